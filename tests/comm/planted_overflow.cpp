// A program with a heap overflow that AddressSanitizer has to report, so that its silence elsewhere means something: a
// parameter's slice of a flat buffer reaches one element past the buffer's end.
// Not a test of anything in braid.
#include <ATen/ops/zeros.h>

#include <cstdio>

int main(int argc, char**) {
  at::Tensor flat = at::zeros({1000}, at::kFloat);
  int64_t offset = 900 + (argc - 1), size = 101;
  float* slice = flat.mutable_data_ptr<float>() + offset;
  for (int64_t i = 0; i < size; ++i) slice[i] = 1.0f;
  std::printf("no overflow was noticed, last element %g\n", slice[size - 1]);
}
