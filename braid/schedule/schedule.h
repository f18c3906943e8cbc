// A pipeline step as data: the actions of each rank, in order. It involves no torch, communicator or clock.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/schedule/action.h"

namespace braid {

// The arguments of a schedule's generator. A generator ignores fields that it does not use, except `chunks`: a schedule
// with a fixed number of stages per rank refuses any other number.
struct ScheduleRequest {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the schedule's own number (2 if it may be chosen)
  // Interleaved schedules: microbatches that pass a chunk before the next chunk's turn. pipedream-2bw: microbatches per
  // update. 0: the schedule chooses.
  int group = 0;
  // The searched schedules read the following. The times are those of one action on one stage and of a transfer, in any
  // one unit. `activation` and `pending` are the memory that a microbatch holds before and after its input-gradient
  // pass, in any one unit.
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  double activation = 1, pending = 0.5;
};

using Program = std::vector<Action>;  // one rank's actions in order

// Limits that a generator promises for its schedule. validate() checks them. An empty list promises nothing.
struct ScheduleProperty {
  std::vector<int> peak_activations;           // upper limit for each rank, counted as in peaks.h
  std::vector<int> peak_pending_weight_grads;  // upper limit for each rank
  int weight_versions = 1;                     // upper limit for any stage
  bool operator==(const ScheduleProperty&) const = default;
};

// The gradients that the backward of a stage computes. Parameters that are not trained need none.
//
//   Whole       those of its input and of its weights: B, or I and W
//   InputOnly   that of its input, since none of its own parameters is trained: I
//   Nothing     none, since nothing is trained on this stage or before it; its next stage sends it no gradient
enum class StageBackward : uint8_t { Whole, InputOnly, Nothing };

struct Schedule {
  std::string name;
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<int> stage_rank;    // the rank that owns each stage
  std::vector<Program> programs;  // one per rank
  // A bidirectional schedule puts every stage on two ranks. Microbatches from mirror_from on run on mirror_rank[stage].
  std::vector<int> mirror_rank = {};  // empty: one direction
  int mirror_from = 0;
  ScheduleProperty promise = {};
  std::vector<StageBackward> backwards = {};  // by stage; empty: all are whole

  StageBackward backward(int stage) const { return backwards.empty() ? StageBackward::Whole : backwards[stage]; }
  int num_ranks() const { return static_cast<int>(programs.size()); }
  bool mirrored() const { return !mirror_rank.empty(); }
  // Returns the rank that runs a stage for a microbatch. Microbatch -1 stands for any of the first direction.
  int rank_of(int stage, int micro) const;
  bool operator==(const Schedule&) const = default;
};

// A copy of a stage's parameters on one rank, and the microbatches [first_micro, end_micro) that run there.
struct StageCopy {
  int stage = 0;
  int rank = 0;
  int first_micro = 0;
  int end_micro = 0;
};

// Returns every copy, by stage and first microbatch. There is one per stage; in a mirrored schedule two, unless both
// would be on one rank.
std::vector<StageCopy> stage_copies(const Schedule& schedule);

// Returns true if program[index] is the first of a fused pair.
inline bool pair_begins(const Program& program, size_t index) {
  return index + 1 < program.size() && fused(program[index], program[index + 1]);
}

// Returns true if program[index] is the second of a fused pair.
inline bool pair_ends(const Program& program, size_t index) { return index > 0 && pair_begins(program, index - 1); }

}  // namespace braid
