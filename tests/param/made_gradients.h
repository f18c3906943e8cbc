// A model with a tied parameter, and gradients whose sums depend on the order of addition.
#pragma once

#include <ATen/ops/add.h>
#include <ATen/ops/empty.h>

#include <vector>

#include "braid/base/seeds.h"
#include "braid/base/text.h"
#include "braid/param/grad_sink.h"

namespace braid::param {

inline std::vector<layout::BlockSpec> tied_model() {
  const layout::ParamSpec first{"wte", mesh::replicated({10, 3}), {}, model::WeightDecay::Yes, 0, 2};
  layout::ParamSpec second = first;
  second.use = 1;
  return {{"embedding", {first, {"wpe", mesh::replicated({4, 3})}}}, {"head", {second}}};
}

// The gradient of a (parameter, use, microbatch): values whose sum depends on the order of addition.
inline at::Tensor gradient(const Parameter& param, int use, int64_t micro) {
  const at::Tensor out = at::empty(param.main_grad.sizes(), param.main_grad.options());
  const uint64_t key = stream_key(use, cat(param.name, "/", micro));
  for (int64_t i = 0; i < out.numel(); ++i) {
    out.mutable_data_ptr<float>()[i] = static_cast<float>((2 * uniform(key, i) - 1) * (i % 2 ? 1 : 1e3));
  }
  return out;
}

inline void write(const GradSlot& slot, const at::Tensor& gradient) {
  if (slot.beta == 0) {
    slot.target.copy_(gradient);
  } else {
    slot.target.mul_(slot.beta).add_(gradient);
  }
}

// Returns the sum of the gradients of microbatches [begin, end) in a balanced tree.
inline at::Tensor tree(const Parameter& param, int use, int64_t begin, int64_t end) {
  if (end - begin == 1) return gradient(param, use, begin);
  const int64_t middle = (begin + end) / 2;
  return at::add(tree(param, use, begin, middle), tree(param, use, middle, end));
}

}  // namespace braid::param
