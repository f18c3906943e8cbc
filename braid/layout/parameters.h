// The parameters of a model as a tensor rank holds them, read from its graph.
#pragma once

#include "braid/layout/param_spec.h"
#include "braid/mesh/placement.h"
#include "braid/model/graph.h"
#include "braid/model/model_spec.h"

namespace braid::layout {

// Returns the parameters of all layers + 2 blocks (embedding, blocks.0 .., head), in the order of their ops. The tensor
// axis splits heads of keys and values with their queries, features of the feed-forward branch, and the vocabulary,
// which is padded (Shoeybi et al., "Megatron-LM", 2019, section 3). REQUIRES: `spec.vocab` is resolved (> 0).
ModelParams model_params(const ModelSpec& spec, int tensor_rank, int tensor_size);
ModelParams model_params(const ModelSpec& spec, const model::ModelGraph& graph, mesh::Share share);

// Sequence parallelism: marks the parameters of ops that run on a rank's own tokens (tensor_sums.h) as copies, of whose
// gradient each tensor rank computes a part.
void split_tokens(const model::ModelGraph& graph, mesh::Share share, ModelParams& params);

// Returns the number of elements of the whole model. A tied parameter counts once, and padding does not count. At
// most 2^62.
int64_t count_params(const ModelSpec& spec);
int64_t count_params(const ModelSpec& spec, const model::ModelGraph& graph);
// Returns the same of the trained parameters.
int64_t count_trained_params(const ModelSpec& spec, const model::ModelGraph& graph);

}  // namespace braid::layout
