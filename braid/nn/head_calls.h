// The calls of ops on the heads of queries, keys and values that this rank has: head norms, rotary positions,
// attention.
#pragma once

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/nn/cached_attention.h"
#include "braid/nn/graph_block.h"
#include "braid/nn/head_norms.h"

namespace braid::nn {

class HeadCalls {
 public:
  // `spec` must outlive this object. The calls that it returns do not read `spec`.
  HeadCalls(const ModelSpec& spec, const RankContext& rank);

  Call::Run norm(const model::Op& op, const HeadNorms& norms) const;
  // `like`: the type and device of the activations.
  Call::Run rotary(const model::Op& op, const at::TensorOptions& like) const;
  // `place`: that of the op in a cache.
  Call::Run attention(const model::Op& op, const KeyValueCache::Place& place) const;

 private:
  const ModelSpec& spec_;
  RankContext rank_;
  int64_t heads_, kv_heads_;
};

}  // namespace braid::nn
