// As a tensor of one element, on the host.
#include "braid/train/all_reduced.h"

#include <ATen/ops/full.h>

namespace braid::train {

double all_reduced(double value, ReduceOp op, Communicator& ranks) {
  const at::Tensor number = at::full({1}, value, at::kDouble);
  ranks.all_reduce(number, op).wait_host();
  return number.item<double>();
}

}  // namespace braid::train
