// The widths of a model's blocks, in elements, with the names that the formulas use.
#pragma once

#include "braid/model/shape.h"

namespace braid::plan {

struct BlockSizes {
  double h;      // hidden state
  double q, kv;  // q: queries of all heads; kv: keys of all heads, or values of all heads
  double f;      // features of the feed-forward branch
  bool gated, rotary;
  double experts;  // number of experts; 0: one branch for all tokens
  double k;        // number of branches that each token uses

  explicit BlockSizes(const ModelSpec& model)
      : h(model.width),
        q(static_cast<double>(model.heads) * model::head_width(model)),
        kv(static_cast<double>(model::num_kv_heads(model)) * model::head_width(model)),
        f(model::ffn_width(model)),
        gated(model::traits_of(model.family).feed_forward == model::FeedForward::Gated),
        rotary(model::traits_of(model.family).positions == model::PositionKind::Rotary),
        experts(model.experts),
        k(model::branches_per_token(model)) {}
};

}  // namespace braid::plan
