// Softmax statistics of rows of logits, and the gradient computed from them, in one pass over memory each.
//
// logits_nv: contiguous, of float32, float64, bfloat16 or float16. Columns from `real` on are padding and count as
// -inf. Statistics are float32 (float64 for float64). On CPUs the passes are fused, and results do not depend on the
// number of threads. CUDA tensors without a cap go to on_device.h if libbraid_cuda.so is loaded; all others are
// composed of LibTorch's operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <utility>

namespace braid::kernels {

// Logits x that count as cap tanh(x / cap); with cap 0 as x.
struct Logits {
  Logits(at::Tensor of_rows, double with_cap = 0) : nv(std::move(of_rows)), cap(with_cap) {}
  at::Tensor nv;
  double cap;
};

struct ColumnRange {
  int64_t begin, end;
};

struct SoftmaxSums {
  at::Tensor max_n;     // -inf if there is no real column
  at::Tensor sum_n;     // sum of exp(x - max)
  at::Tensor target_n;  // the target's logit; 0 if column_n is negative
};

// column_n: int64, the column of each row's target, below `real`; negative if another rank has that column.
SoftmaxSums softmax_sums(const Logits& logits, int64_t real, const at::Tensor& column_n);

// Returns the sums of columns begin .. end - 1, on a CPU; the target's logit is 0 if it is in another column.
SoftmaxSums softmax_sums_of(const Logits& logits, const ColumnRange& columns, const at::Tensor& column_n);

// The inputs of the gradient of n rows.
struct SoftmaxGradient {
  int64_t real = 0;
  at::Tensor column_n;  // as in softmax_sums()
  at::Tensor max_n;     // maximum over all ranks
  at::Tensor sum_n;     // sum over all ranks, relative to that maximum
  at::Tensor step;      // one element, of the statistics' type: the gradient of a row's loss
  double cap = 0;       // that of Logits
};

// Overwrites the logits with step * (exp(logits - max) / sum - onehot), times the slope of the cap, and with 0 in the
// padding.
void softmax_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of);

}  // namespace braid::kernels
