// The widths of a model's blocks, in elements, as formulas name them.
#pragma once

#include "braid/spec/model_shape.h"

namespace braid::plan {

struct BlockSizes {
  double h;      // the hidden state
  double q, kv;  // all heads' queries; keys, or values
  double f;      // the feed-forward branch's features
  bool gated, rotary;
  double experts;  // 0: one branch for all tokens
  double k;        // branches that a token goes through

  explicit BlockSizes(const ModelSpec& model)
      : h(model.width),
        q(static_cast<double>(model.heads) * spec::head_width(model)),
        kv(static_cast<double>(spec::num_kv_heads(model)) * spec::head_width(model)),
        f(spec::ffn_width(model)),
        gated(spec::traits_of(model.family).feed_forward == spec::FeedForward::Gated),
        rotary(spec::traits_of(model.family).positions == spec::PositionKind::Rotary),
        experts(model.experts),
        k(spec::branches_per_token(model)) {}
};

}  // namespace braid::plan
