// Each call captures what it needs by value.
#include "braid/nn/head_calls.h"

#include <memory>

#include "braid/model/shape.h"
#include "braid/nn/attention.h"
#include "braid/nn/rotary.h"

namespace braid::nn {

using model::Op;

HeadCalls::HeadCalls(const ModelSpec& spec, const RankContext& rank)
    : spec_(spec),
      rank_(rank),
      heads_(spec.heads / rank.tensor.size()),
      kv_heads_(model::num_kv_heads(spec) / model::key_head_parts(spec, rank.tensor.size())) {}

Call::Run HeadCalls::norm(const Op& op, const HeadNorms& norms) const {
  return [=, x = op.in[0], y = op.out, h = heads_, k = kv_heads_, rank = rank_](Frame& frame, const Microbatch& m) {
    frame[y] = norm_heads_(frame[x].value, {norms, h, k, m.micro}, rank);
  };
}

Call::Run HeadCalls::rotary(const Op& op, const at::TensorOptions& like) const {
  const auto turned = std::make_shared<const Rotary>(rotary_options(spec_), like);
  return [=, x = op.in[0], y = op.out, heads = heads_ + kv_heads_, part = rank_.context_part()](Frame& frame,
                                                                                                const Microbatch& m) {
    const at::Tensor& x_btf = frame[x].value;
    if (m.cache) turned->rotate_cached_(x_btf, heads, *m.cache);
    frame[y] = m.cache ? x_btf : turned->rotate_(x_btf, heads, part);
  };
}

Call::Run HeadCalls::attention(const Op& op, const KeyValueCache::Place& place) const {
  const CoreCall core{heads_,
                      kv_heads_,
                      {},
                      rank_.keep,
                      op.window,
                      op.cap,
                      op.scale,
                      op.sees,
                      rank_.context,
                      rank_.weight_grads.parts() ? CoreMemory::KeyHeads : CoreMemory::AllHeads};
  const CachedCall cached{heads_, kv_heads_, op.window, place, op.cap, op.scale};
  return [=, x = op.in[0], y = op.out](Frame& frame, const Microbatch& m) {
    if (m.cache) {
      frame[y] = cached_attention(frame[x].value, cached, *m.cache);
      return;
    }
    CoreCall of_micro = core;
    of_micro.documents_bt = m.documents_bt;
    frame[y] = attention_core(frame[x].value, of_micro);
  };
}

}  // namespace braid::nn
