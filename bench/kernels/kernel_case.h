// One kernel at one size, beside the composed LibTorch operations that it replaces. How cases are timed, bench.cpp
// knows.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/ops/randn.h>

#include <functional>
#include <string>
#include <vector>

namespace braid::bench {

struct KernelCase {
  std::string name, size;
  double bytes = 0;               // that must move: each input read once, each output written once
  std::function<void()> prepare;  // before each run, not timed; may be empty
  std::function<void()> ours, composed;
};

inline at::Tensor random(at::IntArrayRef shape, at::ScalarType dtype) { return at::randn(shape, at::kFloat).to(dtype); }

inline double bytes_of(std::initializer_list<at::Tensor> tensors) {
  double bytes = 0;
  for (const at::Tensor& t : tensors) bytes += static_cast<double>(t.nbytes());
  return bytes;
}

}  // namespace braid::bench
