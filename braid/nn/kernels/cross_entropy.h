// Softmax statistics of rows of logits and the gradient they lead to, one pass over memory each.
//
// logits_nv: contiguous, of float32, float64, bfloat16 or float16; columns from `real` on are padding, as if -inf.
// Statistics are float32 (float64 for float64). On CPUs fused and the same on any number of threads. CUDA tensors go
// to on_device.h where libbraid_cuda.so is loaded; on all others it is composed of LibTorch's operations.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::kernels {

struct SoftmaxSums {
  at::Tensor max_n;     // -inf when there is no real column
  at::Tensor sum_n;     // of exp(x - max)
  at::Tensor target_n;  // the target's logit; 0 where column_n is negative
};

// column_n: int64, each row's target, below `real`; negative where it is another rank's.
SoftmaxSums softmax_sums(const at::Tensor& logits_nv, int64_t real, const at::Tensor& column_n);

// The inputs of the gradient of n rows.
struct SoftmaxGradient {
  int64_t real = 0;
  at::Tensor column_n;  // as above
  at::Tensor max_n;     // of all ranks
  at::Tensor sum_n;     // of all ranks
  at::Tensor step;      // one element, of the statistics' type: the gradient of a row's loss
};

// logits = step * (exp(logits - max) / sum - onehot), 0 in the padding.
void softmax_gradient_(const at::Tensor& logits_nv, const SoftmaxGradient& of);

}  // namespace braid::kernels
