// Each call captures what it needs by value.
#include "braid/nn/residual_calls.h"

#include <algorithm>
#include <span>
#include <utility>

#include "braid/layout/tensor_sums.h"

namespace braid::nn {
namespace {

using model::Op;
using model::OpKind;

NormCall of_microbatch(NormCall call, const Microbatch& microbatch) {
  call.micro = microbatch.micro;
  return call;
}

}  // namespace

ResidualCalls::ResidualCalls(const ModelSpec& spec, const model::BlockGraph& block, size_t number,
                             const OpParams& params, const RankContext& rank)
    : spec_(spec), block_(block), number_(number), params_(params), rank_(rank) {}

Dropout ResidualCalls::dropout_of(const Op& op) const {
  const auto is_dropout = [](const Op& other) { return other.kind == OpKind::Dropout; };
  const auto before = std::span(block_.ops).first(&op - block_.ops.data());
  return Dropout({spec_.dropout, static_cast<int>(number_), static_cast<int>(std::ranges::count_if(before, is_dropout)),
                  layout::splits_tokens(block_.values[op.out]) ? rank_.token_part() : rank_.context_part()});
}

NormCall ResidualCalls::norm_call(const Op& op) const {
  const bool layer = op.kind == OpKind::LayerNorm;
  return {layer ? kernels::NormKind::Layer : kernels::NormKind::Rms,
          &params_[op.params[0]],
          layer ? &params_[op.params[1]] : nullptr,
          spec_.norm_eps,
          &rank_.weight_grads,
          0,
          rank_.keep,
          op.offset == 0 ? -0.0 : op.offset,
          layout::splits_tokens(block_, op) ? rank_.weight_grads.parts().of_tokens : 0};
}

Call::Run ResidualCalls::dropout(const Op& op) const {
  return [x = op.in[0], y = op.out, dropout = dropout_of(op)](Frame& frame, const Microbatch& m) {
    frame[y] = dropout.forward(frame[x].value, m);
  };
}

Call::Run ResidualCalls::norm(const Op& op) const {
  return [x = op.in[0], y = op.out, call = norm_call(op)](Frame& frame, const Microbatch& m) {
    Residual opened = norm_residual(frame[x].value, of_microbatch(call, m));
    frame[x] = std::move(opened.sum_btc);
    frame[y] = std::move(opened.normed_btc);
  };
}

Call::Run ResidualCalls::join(const BranchOps& branch, const Op& residual) const {
  return [=, x = residual.in[1], sum = residual.out, rank = rank_](Frame& frame, const Microbatch& m) {
    const Branch added = dropped({frame[branch.value].value, branch.bias}, branch.dropout, rank, m);
    frame[sum] = nn::join(frame[x].value, added, rank, m);
  };
}

Call::Run ResidualCalls::join_and_norm(const BranchOps& branch, const Op& residual, const Op& norm) const {
  return [=, x = residual.in[1], sum = residual.out, y = norm.out, call = norm_call(norm), rank = rank_](
             Frame& frame, const Microbatch& m) {
    const Branch added = dropped({frame[branch.value].value, branch.bias}, branch.dropout, rank, m);
    Residual joined = nn::join_and_norm(frame[x].value, added, of_microbatch(call, m));
    frame[sum] = std::move(joined.sum_btc);
    frame[y] = std::move(joined.normed_btc);
  };
}

}  // namespace braid::nn
