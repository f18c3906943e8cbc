// A pipeline step as data: what each rank does, in order. No torch, no communicator, no clock.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/action.h"

namespace braid {

// The arguments of a schedule's generator.

// A schedule ignores fields that it has no use for, except `chunks`: a schedule with a fixed number of stages per rank
// refuses any other.
struct ScheduleRequest {
  int ranks = 1;
  int microbatches = 1;
  int chunks = 0;  // stages per rank; 0: the schedule's own number (2 where it may be chosen)
  // Interleaved ones: microbatches that pass a chunk before the next chunk's turn. pipedream-2bw: microbatches per
  // update. 0: chosen.
  int group = 0;
  // Read by the searched schedules: times of one action on one stage and of a transfer, in any one unit; and the memory
  // that a microbatch holds before (activation) and after (pending) its input-gradient pass, in any one unit.
  double forward = 1, input_grad = 1, weight_grad = 1, transfer = 0;
  double activation = 1, pending = 0.5;
};

using Program = std::vector<Action>;  // one rank's actions in order

// Limits that a generator promises for its schedule, per rank; validate() checks them. Empty: nothing is promised.
struct ScheduleProperty {
  std::vector<int> peak_activations;           // at most; counted as in peaks.h
  std::vector<int> peak_pending_weight_grads;  // at most
  int weight_versions = 1;                     // at most, of any stage
  bool operator==(const ScheduleProperty&) const = default;
};

struct Schedule {
  std::string name;
  int num_stages = 0;
  int num_microbatches = 0;
  std::vector<int> stage_rank;    // the rank that owns each stage
  std::vector<Program> programs;  // one per rank
  // A bidirectional schedule puts every stage on two ranks: microbatches from mirror_from on run where mirror_rank
  // says.
  std::vector<int> mirror_rank = {};  // empty: one direction
  int mirror_from = 0;
  ScheduleProperty promise = {};

  int num_ranks() const { return static_cast<int>(programs.size()); }
  bool mirrored() const { return !mirror_rank.empty(); }
  // The owner of a stage for a microbatch; microbatch -1 stands for any of the first direction.
  int rank_of(int stage, int micro) const;
  bool operator==(const Schedule&) const = default;
};

// A stage's parameters on one rank, with the microbatches [first_micro, end_micro) that run there.
struct StageCopy {
  int stage = 0;
  int rank = 0;
  int first_micro = 0;
  int end_micro = 0;
};

// Every copy, by stage and first microbatch: one per stage, two of a mirrored one unless both are on one rank.
std::vector<StageCopy> stage_copies(const Schedule& schedule);

// True when program[index] is the first of a fused pair.
inline bool pair_begins(const Program& program, size_t index) {
  return index + 1 < program.size() && fused(program[index], program[index + 1]);
}

// True when program[index] is the second of a fused pair.
inline bool pair_ends(const Program& program, size_t index) { return index > 0 && pair_begins(program, index - 1); }

}  // namespace braid
