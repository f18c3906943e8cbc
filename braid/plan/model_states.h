// The model states of a rank: weights, gradients, optimizer states.
#pragma once

#include "braid/plan/reducer_state.h"
#include "braid/plan/run_layout.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// The bytes of a float32, the type of masters and states of narrower weights.
inline constexpr double kFloatBytes = 4;

// The size of a set of parameters on one rank. All of them are replicated on the same ranks.
struct ParameterSum {
  double count = 0;           // elements of trained parameters, with the padding between parameters
  double moments = 0;         // elements of optimizer states, without master weights
  ReducerBytes reduced = {};  // state and messages of gradient compression; zeros without it
  double frozen = 0;          // elements of frozen parameters, which have weights only
  double forward_only = 0;    // of these, elements of blocks that backward does not run

  double all() const { return count + frozen; }
  ParameterSum& operator+=(const ParameterSum& other);
  bool operator==(const ParameterSum&) const = default;
};
ParameterSum operator*(double times, const ParameterSum& sum);

// The parameters of a stage. `experts` are the parameters of experts, replicated over data x context ranks. `shared`
// are all others, replicated over data x context x expert ranks (mesh/placement.h).
struct StageParameters {
  ParameterSum shared, experts;

  double count() const { return shared.count + experts.count; }
  double all() const { return shared.all() + experts.all(); }
  StageParameters& operator+=(const StageParameters& other);
  bool operator==(const StageParameters&) const = default;
};

// The kind of a parameter: a bias or norm, an embedding table or head, or a matrix inside a block.
enum class ParameterKind { Vector, Table, BlockMatrix };
// Returns the number of moments of a parameter: AdamW 2, SGD with momentum 1, Adagrad and Lion 1, SGD without momentum
// 0. Muon has 1 for matrices inside blocks and AdamW's 2 for all others.
int num_moments(const OptimizerSpec& spec, ParameterKind kind);

// Model states in bytes, before sharding. With 16-bit weights, Adam has these bytes for each parameter:
//
//   weights     2
//   gradients   4 in float32 under braid, and under Megatron-LM with bfloat16; 2 under Megatron-LM with float16
//   optimizer   12: float32 master weight and two moments
//
// The sum is 16 with 16-bit gradients (Rajbhandari et al., "ZeRO", 2020, section 3.1), and 18 with float32 gradients.
// torchtitan holds 16 bytes too: float32 gradients in `gradients`, and float32 weights and moments in `optimizer`. Its
// `weights` are the copy in the run's type that is gathered for each pass.
struct StateBytes {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double frozen = 0;        // weights that are not trained, in the run's type
  double forward_only = 0;  // of these, weights of blocks that backward does not run

  double total() const { return weights + gradients + optimizer + frozen; }
  StateBytes& operator+=(const StateBytes& other);
};
// With optimizer.state_dtype = "bfloat16" a moment has 2 bytes, so `optimizer` is 8; with "int8" 1 + 1/16.
StateBytes state_bytes(DType type, FormulaSet formulas, const ParameterSum& sum, StateType states = StateType::Float32);

// Returns the bytes on one of `shards` ranks under ZeRO stage `zero`: 1 shards the optimizer states, 2 also gradients,
// 3 also weights (ZeRO, figure 1).
StateBytes sharded(StateBytes bytes, int zero, int shards);

// Parameters of a rank, and the group of ranks on which they are replicated.
struct CopiedParameters {
  StateBytes bytes;         // before sharding
  double summed_bytes = 0;  // bytes of their gradients as they are sent, compressed or not
  RankGroup copies;         // the ranks on which they are replicated
  int shards = 1;           // number of ranks that shard them (num_shards())
};
// Returns an entry for each of StageParameters::shared and ::experts that is not empty.
std::vector<CopiedParameters> copied_parameters(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                                                const StageParameters& parameters);
// Returns the number of ranks among `copies` over which ZeRO shards; 1: nothing is sharded. This is sync.zero_group, or
// all ranks of `copies` if that is 0. If each stage is on two pipeline ranks (DualPipe), sharding extends over both,
// unless each has a sharding group of one rank.
int num_shards(const RunSpec& spec, const RunLayout& layout, RankGroup copies);
// Returns the bytes that a rank holds of `parameters` under the run's sync.zero.
StateBytes held_bytes(const RunSpec& spec, const RunLayout& layout, FormulaSet formulas,
                      const StageParameters& parameters);

// Returns the bytes for each parameter that sync.replication needs in addition to the model states. A copy has the size
// of the float32 or float64 master weight:
//
//   DiLoCo              2 copies: the last average and the outer momentum
//   parameter servers   2 served_share() copies: the parameters that servers update and those that workers read; 1 copy
//                       of gradients if they are clipped; 1 copy of gradients if they are sent once in several steps
//
// Gradients on their way to servers are in save_bytes().
double replication_bytes(const RunSpec& spec, RankGroup copies);
// Returns the largest fraction of the parameters, with their optimizer states, that the parameter servers on one mesh
// rank hold; 1 without parameter servers, and 0 if they are ranks of their own. Otherwise server s runs on rank s mod n
// of the n ranks of `copies`.
double served_share(const RunSpec& spec, RankGroup copies);
// Returns the peak memory of each server that is a rank of its own; 0 if there is none. Its parameters take 2 copies
// and the moments. While it applies updates, the gradient of every worker may be there in addition; at a save, a copy
// of the moments, which all answers share. `of_replica` has the parameters of all pipeline ranks of one tensor rank.
double server_rank_bytes(const RunSpec& spec, const RunLayout& layout, const ParameterSum& of_replica);
// Returns what a push or a save adds on a worker of parameter servers, at times at which the worker holds no
// activations; 0 in other runs. A push has the gradients on their way. A save has the moments, and the servers'
// answers: of servers that are ranks of their own, the parameters and moments of one server; else the moments of those
// on the worker's rank. `of_rank` has the parameters of the worker.
double save_bytes(const RunSpec& spec, const ParameterSum& of_rank, RankGroup copies);

// Returns the copy of a rank's part of a checkpoint with checkpoint.async: masters and moments, sharded over ranks
// with the same parameters.
double snapshot_bytes(const RunSpec& spec, const RunLayout& layout, const StageParameters& parameters);

// Returns the tied table (the weight that embedding and head share) on one tensor rank; zero if each has its own.
ParameterSum tied_parameters(const RunSpec& spec, const RunLayout& layout);

// Parameters of the parts that stages are made of, on one tensor rank. Experts are those of one expert rank.
struct PartParameters {
  std::vector<StageParameters> parts;  // of blocks: those of ModelAccount
  StageParameters block;               // the largest block, of equal ones that with the most trained parameters
  ParameterSum tokens, positions;      // embedding tables; `positions` is zero with rotary positions
  ParameterSum last_norm;
  ParameterSum table;  // the head's
  OutputWeights head = OutputWeights::Tied;
};
PartParameters part_parameters(const RunSpec& spec, const RunLayout& layout);

// Returns the parameters that a stage has outside of blocks.
ParameterSum end_parameters(const PartParameters& parts, const StageLoad& load);
// Return the parameters of a stage on one tensor rank, with the experts of one expert rank. A stage with a tied head
// but without the embedding has a copy of the tied table. rank_shares() subtracts it on a rank that has both the first
// and the last stage.
StageParameters stage_parameters(const PartParameters& parts, const StageLoad& load);
StageParameters stage_parameters(const RunSpec& spec, const RunLayout& layout, const StageLoad& load);

}  // namespace braid::plan
