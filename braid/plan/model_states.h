// The model states of a rank: weights, gradients, optimizer states.
#pragma once

#include "braid/plan/reducer_state.h"
#include "braid/plan/run_layout.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Parameters of a rank that the same ranks hold copies of.
struct ParameterSum {
  double count = 0;           // with the gaps between them
  double moments = 0;         // numbers that the optimizer keeps of them, beside masters
  ReducerBytes reduced = {};  // of their gradients, where these are compressed

  ParameterSum& operator+=(const ParameterSum& other);
  bool operator==(const ParameterSum&) const = default;
};
ParameterSum operator*(double times, const ParameterSum& sum);

// Copies of `shared` are on all ranks that see other samples, data x context x expert; those of `experts` on data x
// context (mesh/placement.h).
struct StageParameters {
  ParameterSum shared, experts;

  double count() const { return shared.count + experts.count; }
  StageParameters& operator+=(const StageParameters& other);
  bool operator==(const StageParameters&) const = default;
};

// Returns the moments of a parameter: AdamW 2, SGD with a momentum, Adagrad and Lion 1, SGD without 0. Muon has 1 for
// matrices inside blocks and AdamW's 2 for all others.
enum class ParameterKind { Vector, Table, BlockMatrix };
int num_moments(const OptimizerSpec& spec, ParameterKind kind);

// Bytes of so many parameters before sharding. Adam in 16 bits, for each: 2 of weights, 2 or 4 of gradients, 12 of
// float32 masters and moments; 16 in all with gradients of 16 bits (Rajbhandari et al., "ZeRO", 2020, section 3.1), 18
// with float32 main gradients, as braid has them, and Megatron-LM for bfloat16, while for float16 it keeps 16 bits
// unless told not to. torchtitan gathers weights of the run's type, and holds float32 weights, gradients and moments:
// 16 as well.
struct StateBytes {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;

  double total() const { return weights + gradients + optimizer; }
  StateBytes& operator+=(const StateBytes& other);
};
StateBytes state_bytes(DType type, FormulaSet formulas, const ParameterSum& sum);

// On one of `shards` ranks under ZeRO's stage `zero`: 1 shards the optimizer, 2 gradients too, 3 weights too (ZeRO,
// figure 1).
StateBytes sharded(StateBytes bytes, int zero, int shards);

// Parameters of a rank with those that hold copies of them.
struct CopiedParameters {
  StateBytes bytes;         // before sharding
  double summed_bytes = 0;  // of gradients, as they travel
  RankGroup copies;
  int shards = 1;  // ranks among them that share out what ZeRO shards: sync.zero_group, or all data ranks; both copies
                   // of a mirrored stage where these are several
};
// Returns an entry for each kind that the rank has: shared parameters, experts.
std::vector<CopiedParameters> copied_parameters(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                                                const StageParameters& parameters);
// The ranks that shard, of `copies`; 1: nothing is sharded.
int num_shards(const RunSpec& spec, const RunLayout& layout, RankGroup copies);
// All that it holds of them under the run's sync.zero.
StateBytes held_bytes(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                      const StageParameters& parameters);

// Returns the further copies of a parameter's master that replication takes: under DiLoCo 2, the last average and
// the outer momentum. Under parameter servers, on the rank that has them, 2, what they hold and what
// workers read; and on each rank the gradients that are clipped before they leave, and those that are added up. Pushes
// on their way come on top, while there are no activations.
double replication_bytes(const RunSpec& spec);

// Returns the table that embedding and head share, on a tensor rank; zero where each has its own.
ParameterSum tied_parameters(const RunSpec& spec, const RunLayout& layout);

// The parts that stages are made of, on a tensor rank, and of experts those of an expert rank.
struct PartParameters {
  ParameterSum attention;
  StageParameters feed;
  ParameterSum tokens, positions;  // tables; positions none where they are turned
  ParameterSum last_norm;
  OutputWeights head = OutputWeights::Tied;

  StageParameters blocks(double attentions, double feeds) const;
};
PartParameters part_parameters(const RunSpec& spec, const RunLayout& layout);

// Parameters of a stage on one of its tensor ranks, and of its experts those of one of its expert ranks. A tied head
// that is not in the embedding's stage has the table too; a rank with both stages has it once.
StageParameters stage_parameters(const PartParameters& parts, const StageLoad& load);
StageParameters stage_parameters(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid::plan
