// The norms of heads, with the kernel of the norms of the hidden state.
#include "braid/nn/head_norms.h"

#include <ATen/ops/stack.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/nn/kept.h"
#include "braid/nn/kernels/norm.h"
#include "braid/nn/kernels/part_product.h"
#include "braid/nn/regions.h"
#include "braid/nn/weight_grads.h"

namespace braid::nn {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

struct HeadNormState {
  HeadNormCall call;
  Communicator* tensor;
  param::WeightGradQueue* queue;
  comm::OpName name = comm::CallName::current().backward();  // of the calls of backward
};

// Returns [queries, keys] as views of the rows.
std::vector<at::Tensor> normed_heads(const at::Tensor& qkv_btf, const HeadNormCall& call) {
  const int64_t b = qkv_btf.size(0), t = qkv_btf.size(1), h = call.heads, k = call.kv_heads;
  const at::Tensor heads_bthd = qkv_btf.view({b, t, h + 2 * k, -1});
  return {heads_bthd.narrow(2, 0, h), heads_bthd.narrow(2, h, k)};
}

kernels::NormParams params_of(const param::Parameter* weight, double eps) {
  return {kernels::NormKind::Rms, weight->data.detach(), {}, eps};
}

struct NormHeads : Function<NormHeads> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& qkv_btf,
                            const std::optional<at::Tensor>& /*trained*/, const HeadNormState& state) {
    keep(ctx, state);
    ctx->mark_dirty({qkv_btf});
    const HeadNorms& norms = state.call.norms;
    const auto heads = normed_heads(qkv_btf, state.call);
    variable_list saved;
    for (size_t i = 0; i < 2; ++i) {
      const at::Tensor x = heads[i].contiguous();
      // contiguous() makes no copy if the view is contiguous already, so the copy is made here.
      const at::Tensor kept_x = x.is_same(heads[i]) ? x.clone() : x;
      const auto normed =
          kernels::norm_forward({kept_x, {}, {}}, params_of(i == 0 ? norms.query : norms.key, norms.eps));
      heads[i].copy_(normed.y);
      saved.push_back(kept_x);
      saved.push_back(normed.rstd);
    }
    saved.push_back(norms.query->data);
    saved.push_back(norms.key->data);
    ctx->save_for_backward(saved);
    return qkv_btf;
  }

  static variable_list backward(AutogradContext* ctx, variable_list& grads) {
    const auto& [call, tensor, queue, name] = kept<HeadNormState>(ctx);
    const variable_list saved = ctx->get_saved_variables();
    // The gradient is overwritten if nothing else holds it.
    const bool ours = grads[0].use_count() == 1 && grads[0].storage().use_count() == 1 && grads[0].is_contiguous();
    const at::Tensor d_btf = ours ? std::move(grads[0]) : grads[0].clone(at::MemoryFormat::Contiguous);
    const auto heads = normed_heads(d_btf, call);
    std::vector<at::Tensor> dweights;
    for (size_t i = 0; i < 2; ++i) {
      const kernels::NormParams params{kernels::NormKind::Rms, saved[4 + i].detach(), {}, call.norms.eps};
      const at::Tensor x = saved[2 * i], rstd = saved[2 * i + 1].view(x.sizes().slice(0, 3));
      const int64_t parts = std::max(1, queue->parts().of_rank), num_heads = x.size(2);
      std::vector<at::Tensor> of_parts;
      for (int64_t part = 0; part < parts; ++part) {
        const int64_t begin = kernels::part_begin(num_heads, part, parts);
        const int64_t count = kernels::part_begin(num_heads, part + 1, parts) - begin;
        const auto own = [&](const at::Tensor& of_heads) { return of_heads.narrow(2, begin, count).contiguous(); };
        const auto d = kernels::norm_backward({{}, own(heads[i])}, {own(x), {}, {}, own(rstd).view({-1})}, params);
        heads[i].narrow(2, begin, count).copy_(d.dx);
        of_parts.push_back(d.dweight);
      }
      dweights.push_back(kernels::tree_sum(at::stack(of_parts)));
    }
    if (any_trained({call.norms.query, call.norms.key})) {
      const at::Tensor sums = at::stack(dweights);
      const comm::CallName calls(name);
      if (tensor->size() > 1) all_reduce_(sums, ReduceOp::Sum, *tensor);
      push_value({queue, {call.norms.query, 0}, call.micro}, sums.select(0, 0));
      push_value({queue, {call.norms.key, 0}, call.micro}, sums.select(0, 1));
    }
    return {d_btf, {}, {}};
  }
};

}  // namespace

at::Tensor norm_heads_(const at::Tensor& qkv_btf, const HeadNormCall& call, const RankContext& rank) {
  check(qkv_btf.is_contiguous(), "heads to normalise, in rows");
  const auto trained = any_trained({call.norms.query, call.norms.key});
  return NormHeads::apply(qkv_btf, trained, HeadNormState{call, &rank.tensor, &rank.weight_grads});
}

}  // namespace braid::nn
