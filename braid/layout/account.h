// The costs of a model's parts, read from its graph. They are counted once for a model, and evaluated for each layout.
#pragma once

#include <vector>

#include "braid/layout/tensor_sums.h"
#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/model/shape.h"
#include "braid/model/terms.h"
#include "braid/spec/mesh_spec.h"

namespace braid::layout {

// The extents of a model's letters on one rank, for a microbatch. `between` is for ops and values with no letter that
// the tensor axis splits. Under sequence parallelism the tensor ranks split the tokens of these.
struct RankExtents {
  model::Extents all, between;
};

// The ranks that share a microbatch.
struct SharingRanks {
  double tokens = 1;  // of a microbatch on one rank
  int tensor = 1, expert = 1;
  Sequence between = Sequence::Whole;
  double sequences = 1;           // of a microbatch, to which the tokens belong
  int context = 1, exchange = 1;  // exchange: of the context ranks, those that exchange tokens for heads
  ContextParallel form = ContextParallel::Ring;
  TensorSums sums = TensorSums::Joined;
};

// A sum over ops.
struct Count {
  model::Terms all, between;

  double at(const RankExtents& extents) const { return all.at(extents.all) + between.at(extents.between); }
};

enum class HeldBy { EveryRank, ExpertRanks };

// A parameter: an op's matrix, or with one column its vector. ExpertRanks: there is one for each expert.
struct ParamCount {
  model::OpKind op;
  model::Terms rows, columns;
  HeldBy held = HeldBy::EveryRank;
  model::Trained trained = model::Trained::Yes;
};

// The gradients that backward computes of a product's input and of its weight.
struct ProductGradients {
  bool of_input = true, of_weight = true;
};

// A matrix product of [rows, in] and [in, out].
struct ProductCount {
  Count rows;
  model::Terms in, out;
  ProductGradients gradients;
};

// The activations of a microbatch that are kept for backward, without the masks of dropout.
struct Kept {
  Count elements;  // of the type of the activations
  Count floats;    // float32 numbers
};

// The costs of some ops. Those of backward are of the ops that backward runs through (model/trained.h).
struct PartAccount {
  std::vector<ParamCount> params;
  std::vector<ProductCount> products;
  std::vector<ProductCount> expert_products;         // rows: those of all experts together
  model::Terms attention_flops, attention_elements;  // operations of forward; elements of its inputs and outputs
  bool attends_backward = true;                      // false: attention has no backward
  bool runs_backward = true;                         // false: no op of its block has a backward
  Count forward, backward;                           // elements of memory-bound kernels
  Count recomputed;  // of these, those of forward of norms and activations that are recomputed
  Count masked;      // elements that dropout may drop, and whose masks are kept

  Kept everything, selected;                // for backward, the second under selective recompute
  Kept pending;                             // of products, for a separate pass of weight gradients
  model::Terms tables;                      // float32 numbers of rotary positions
  int forward_sums = 0, backward_sums = 0;  // sums of a hidden state over tensor ranks (tensor_sums.h)
  int float_sums = 0;                       // those of forward that are made in float32
  // Under sequence parallelism:
  int gathered_again = 0;      // inputs of products whose tokens backward gathers again
  model::Terms summed_params;  // elements of parameters whose gradients tensor ranks sum
  int num_summed_params = 0;
};

// The costs of a model.
struct ModelAccount {
  ModelSpec spec;
  model::Extents of_token;  // of one token and the whole model
  double flops_per_token;   // model::model_flops_per_token()
  TensorSums sums;          // sums of gradients are in float32 if they are ByValue
  PartAccount tokens;       // the table of tokens
  PartAccount positions;    // the rest of the embedding
  // The parts into which cuts divide a layer, for each kind of layer in the order of ModelGraph::layer_kinds(). All
  // kinds have as many.
  std::vector<PartAccount> parts;
  std::vector<int> kind_of_layer;
  PartAccount last_norm;   // the head without its table; a bias of the logits counts here
  PartAccount table;       // the parameter of the head's table, which may be that of tokens
  model::Terms loss_rows;  // the tokens whose logits are computed
  Count loss_input;        // elements of what the loss reads and keeps
  ProductGradients of_logits;
  bool picks_rows = false;    // true if the head picks tokens, so nothing keeps the last layer's output
  bool ends_in_norm = false;  // true if a layer's last op is a norm: its input is free when the branches run backward

  size_t num_kinds() const { return parts.size() / parts_of_layer(); }
  size_t parts_of_layer() const { return static_cast<size_t>(model::parts_of_layer(spec)); }
  // Returns the number in `parts` of part `part` of layer `layer`.
  size_t part_of(int layer, size_t part) const { return kind_of_layer[layer] * parts_of_layer() + part; }
};

// Counts a model, which may have frozen parameters. Without a vocabulary the head has no table. `picked`: the fraction
// of the tokens whose logits a masked family computes. REQUIRES: heads form groups.
ModelAccount account_of(const ModelSpec& spec, double picked = 1);
ModelAccount account_of(const ModelSpec& spec, const model::ModelGraph& graph, double picked = 1,
                        TensorSums sums = TensorSums::Joined);

// Returns the extents on one of these ranks. The vocabulary is padded.
RankExtents rank_extents(const ModelAccount& account, const SharingRanks& ranks);

}  // namespace braid::layout
