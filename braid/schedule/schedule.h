// A pipeline step as data: what each rank does, in order. No torch, no communicator, no clock.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/action.h"

namespace braid {

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
