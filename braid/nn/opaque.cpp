// The function's own graph inside one node of the model's.
#include "braid/nn/opaque.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/model/shape.h"
#include "braid/nn/kept.h"
#include "braid/nn/regions.h"
#include "braid/param/saved_graph.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct OpaqueState {
  std::vector<OpaqueParam> params;
  variable_list leaves;  // x and the parameters
  at::Tensor y;          // undefined once backward has run
  comm::OpName name;     // of the calls of backward
};

// Returns the gradients of the leaves; undefined for those that need none.
variable_list gradients(const at::Tensor& y, const variable_list& leaves, const at::Tensor& dy) {
  variable_list needing, found;
  std::ranges::copy_if(leaves, std::back_inserter(needing),
                       [](const at::Tensor& leaf) { return leaf.requires_grad(); });
  if (y.requires_grad()) found = torch::autograd::grad({y}, needing, {dy}, {}, false, /*allow_unused=*/true);
  found.resize(needing.size());
  variable_list d(leaves.size());
  for (size_t i = 0, next = 0; i < leaves.size(); ++i) {
    if (!leaves[i].requires_grad()) continue;
    d[i] = found[next++];
    if (!d[i].defined()) d[i] = at::zeros_like(leaves[i]);
  }
  return d;
}

// A gradient may share its memory with others, so the sum has its own.
at::Tensor summed(const at::Tensor& gradient, Communicator& ranks) {
  at::Tensor sum = gradient.clone(at::MemoryFormat::Contiguous);
  all_reduce_(sum, ReduceOp::Sum, ranks);
  return sum;
}

// Letters of sequences and tokens have the extents of `x`.
void check_output(const at::Tensor& y, const at::Tensor& x, const OpaqueCall& call) {
  model::Extents extents = call.extents;
  for (size_t i = 0; i < call.in.size(); ++i) {
    const std::string letters = model::text_of({call.in[i]});
    if (letters.size() == 1) extents[letters[0]] = static_cast<double>(x.size(static_cast<int64_t>(i)));
  }
  const std::vector<int64_t> expected = extents.shape(call.out);
  if (y.sizes() == expected && y.scalar_type() == x.scalar_type()) return;
  const auto text = [](at::IntArrayRef sizes, at::ScalarType type) { return cat(at::toString(type), sizes); };
  throw ConfigError({{"model.family", "",
                      cat("must have functions that return the dims of their ops and the type of x: ", call.rule,
                          " returns ", text(y.sizes(), y.scalar_type()), ", not ", text(expected, x.scalar_type())),
                      ""}});
}

struct Opaque : Function<Opaque> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const std::optional<at::Tensor>& trained,
                            const OpaqueCall& call, bool grad_mode) {
    const bool needs_gradients = grad_mode && (x.requires_grad() || trained);
    variable_list leaves{x.detach()};
    leaves[0].requires_grad_(needs_gradients && x.requires_grad());
    for (const OpaqueParam& param : call.params) {
      const param::Parameter& read = *param.target.param.param;
      leaves.push_back(read.data.detach().requires_grad_(needs_gradients && read.is_trained()));
    }
    const c10::AutoGradMode grad(needs_gradients);
    // The function may hold its input longer than the leaf is whole.
    const at::Tensor input = param::SavedGraph::moves_here() ? leaves[0].view_as(leaves[0]) : leaves[0];
    const at::Tensor y = call.function->forward(input, {leaves.begin() + 1, leaves.end()});
    check_output(y, x, call);
    const at::Tensor out = y.detach();
    if (needs_gradients) {
      const bool moves = param::SavedGraph::moves_here() && y.requires_grad();
      if (moves) param::free_leaf(leaves[0]);
      keep(ctx, OpaqueState{call.params, std::move(leaves), moves ? param::root_like(y) : y,
                            comm::CallName::current().backward()});
    }
    return call.memory == OpaqueMemory::Own ? out.clone(at::MemoryFormat::Contiguous) : out.contiguous();
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    OpaqueState& state = kept<OpaqueState>(ctx);
    check(state.y.defined(), "the backward of an opaque op runs once");
    const comm::CallName calls(state.name);
    const variable_list d = gradients(std::exchange(state.y, {}), std::exchange(state.leaves, {}), grads[0]);
    for (size_t i = 0; i < state.params.size(); ++i) {
      const auto& [target, sums] = state.params[i];
      if (!target.param.param->is_trained()) continue;
      push_value(target, sums ? summed(d[i + 1], *sums) : d[i + 1]);
    }
    return {d[0], {}, {}, {}};
  }
};

}  // namespace

OpaqueCall opaque_call(const ModelSpec& spec, const model::BlockGraph& block, const model::Op& op,
                       Communicator& tensor) {
  OpaqueCall call{op.function, block.values[op.in[0]], block.values[op.out], model::extents_of(spec, 1, 1),
                  cat("opaque ", model::rule_text(block, op))};
  call.extents['v'] = static_cast<double>(model::padded_vocab(spec, tensor.size()));
  call.extents.split_over(tensor.size());
  for (const model::Param& param : op.params) {
    const bool sums = tensor.size() > 1 && layout::sums_gradient_of(block, op, param);
    call.params.push_back({{}, sums ? &tensor : nullptr});
  }
  const bool is_summed = tensor.size() > 1 && layout::summed_values(block)[op.out];
  call.memory = is_summed || model::is_overwritten(block, op.out) ? OpaqueMemory::Own : OpaqueMemory::Shared;
  return call;
}

at::Tensor opaque(const at::Tensor& x, const OpaqueCall& call) {
  std::optional<at::Tensor> trained;
  for (const OpaqueParam& param : call.params) {
    if (!trained) trained = any_trained({param.target.param.param});
  }
  return Opaque::apply(x, trained, call, c10::GradMode::is_enabled());
}

}  // namespace braid::nn
