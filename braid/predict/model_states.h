// What a rank holds of a model whatever it computes: weights, gradients, the optimizer's states. It knows no
// activations.
#pragma once

#include "braid/predict/run_layout.h"
#include "braid/spec/run_spec.h"

namespace braid {

// Bytes for each parameter before sharding. Adam in 16 bits: 2 of weights, 2 or 4 of gradients, 12 of float32 masters
// and moments; 16 in all with gradients of 16 bits (Rajbhandari et al., "ZeRO", 2020, section 3.1), 18 with float32
// main gradients, as braid has them, and Megatron-LM for bfloat16, while for float16 it keeps 16 bits unless told not
// to.
struct StateBytes {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;

  double total() const { return weights + gradients + optimizer; }
};
StateBytes state_bytes(DType type, OptimizerKind kind, FormulaSet formulas);

// On one of `shards` ranks under ZeRO's stage `zero`: 1 shards the optimizer, 2 gradients too, 3 weights too (ZeRO,
// figure 1).
StateBytes sharded(StateBytes bytes, int zero, int shards);

// The ranks that shard: sync.zero_group, or all data ranks; both copies of a mirrored stage where these are several.
int num_shards(const RunSpec& spec, const RunLayout& layout);

// Of the table that embedding and head share, on a tensor rank; 0 where each has its own.
double tied_parameters(const RunSpec& spec, const RunLayout& layout);

// Parameters of a stage on one of its tensor ranks. A tied head that is not in the embedding's stage has the table too;
// a rank with both stages has it once.
double stage_parameters(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid
