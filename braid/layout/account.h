// The costs of a model's parts, read from its graph. They are counted once for a model, and evaluated for each layout.
#pragma once

#include <vector>

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/model/terms.h"

namespace braid::layout {

enum class HeldBy { EveryRank, ExpertRanks };

// A parameter: an op's matrix, or with one column its vector. ExpertRanks: there is one for each expert.
struct ParamCount {
  model::OpKind op;
  model::Terms rows, columns;
  HeldBy held = HeldBy::EveryRank;
};

// The costs of some ops.
struct PartAccount {
  std::vector<ParamCount> params;
};

// The costs of a model. The halves are those of one layer.
struct ModelAccount {
  ModelSpec spec;
  model::Extents of_token;  // of one token and the whole model
  double flops_per_token;   // model::model_flops_per_token()
  PartAccount tokens;       // the table of tokens
  PartAccount positions;    // the rest of the embedding
  PartAccount attention, feed;
  PartAccount last_norm;  // the head without its table
};

// Without a vocabulary the head has no table. REQUIRES: heads form groups.
ModelAccount account_of(const ModelSpec& spec);

}  // namespace braid::layout
