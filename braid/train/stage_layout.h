// The stages of each pipeline rank and their microbatches, taken from a schedule.
//
//   one each       0 1 2 3        several       0 1 2 3         V       0 1 2 3        mirrored   0 1 2 3
//                                 (looped)      4 5 6 7                 7 6 5 4                   3 2 1 0  (2nd half)
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::train {

// A half-open range of microbatches.
struct MicroRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

// Returns the faults of the stages of `schedule` that validate() does not find, one sentence each. They are a pipeline
// rank without a stage, mirrored stages that do not pair ranks, and directions with unequal numbers of microbatches.
// Empty for every generated schedule.
std::vector<std::string> layout_faults(const Schedule& schedule);

class StageLayout {
 public:
  // REQUIRES: layout_faults(schedule) is empty (check).
  explicit StageLayout(const Schedule& schedule);
  // Returns the layout of a whole model as one stage on one rank.
  static StageLayout single();

  int num_stages() const { return static_cast<int>(stage_rank_.size()); }
  // Returns the stages of a pipeline rank, ascending.
  std::vector<int> stages_of(int rank) const;
  bool holds(int rank, int stage) const;
  // Returns the microbatches that pass `stage` on `rank`. REQUIRES: holds(rank, stage).
  MicroRange microbatches(int rank, int stage) const;
  // Returns the number of microbatches that pass each of the rank's stages.
  int num_microbatches(int rank) const { return microbatches(rank, stages_of(rank).front()).size(); }
  // Returns true if every stage is on two ranks. These form a pair, and have the same stages.
  bool mirrored() const { return !mirror_rank_.empty(); }
  // Returns the gradients that the backward of a stage computes.
  StageBackward backward(int stage) const { return backwards_.empty() ? StageBackward::Whole : backwards_[stage]; }
  // Returns the lower rank of the pair of `rank`; `rank` itself if the layout is not mirrored.
  int pair_of(int rank) const;

 private:
  std::vector<int> stage_rank_, mirror_rank_;
  std::vector<StageBackward> backwards_;
  int num_microbatches_ = 1, mirror_from_ = 0;
};

}  // namespace braid::train
