// The widths of a model's blocks, in elements, with the names that the formulas use.
#pragma once

#include <algorithm>

#include "braid/model/families.h"
#include "braid/model/shape.h"

namespace braid::plan {

struct BlockSizes {
  double h;      // hidden state
  double q, kv;  // q: queries of all heads; kv: keys of all heads with their copies on tensor ranks, or values
  double f;      // width of the feed-forward layer (MLP)
  bool gated;
  double experts;  // number of experts; 0: a dense feed-forward layer
  double k;        // number of experts that each token uses; 1 without experts

  BlockSizes(const ModelSpec& model, int tensor)
      : h(model.width),
        q(static_cast<double>(model.heads) * model::head_width(model)),
        kv(static_cast<double>(std::max(model::num_kv_heads(model), tensor)) * model::head_width(model)),
        f(model::ffn_width(model)),
        gated(model::family_of(model).traits.feed_forward == model::FeedForward::Gated),
        experts(model.experts),
        k(model::branches_per_token(model)) {}
};

}  // namespace braid::plan
