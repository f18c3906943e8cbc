// The stages of each pipeline rank, and their microbatches, from a schedule.
//
//   one each       0 1 2 3        several       0 1 2 3         V       0 1 2 3        mirrored   0 1 2 3
//                                 (looped)      4 5 6 7                 7 6 5 4                   3 2 1 0  (2nd half)
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::train {

// Half-open.
struct MicroRange {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

// Why ranks could not hold the stages of `schedule` as it asks, one sentence each; empty for every generated one.
// Beyond validate(): a pipeline rank without a stage, mirrored stages that do not pair ranks, directions of unequal
// length.
std::vector<std::string> layout_faults(const Schedule& schedule);

class StageLayout {
 public:
  // layout_faults() finds none (check).
  explicit StageLayout(const Schedule& schedule);
  // The whole model as one stage on one rank.
  static StageLayout single();

  int num_stages() const { return static_cast<int>(stage_rank_.size()); }
  // Returns the stages of a pipeline rank, ascending.
  std::vector<int> stages_of(int rank) const;
  bool holds(int rank, int stage) const;
  // The microbatches that pass `stage` on `rank`, which holds it.
  MicroRange microbatches(int rank, int stage) const;
  // Returns the number of microbatches that pass each of the rank's stages.
  int num_microbatches(int rank) const { return microbatches(rank, stages_of(rank).front()).size(); }
  // Mirrored: every stage is on two ranks, which form a pair with the same stages. Else a rank is its own pair.
  bool mirrored() const { return !mirror_rank_.empty(); }
  int pair_of(int rank) const;  // the lower rank of its pair

 private:
  std::vector<int> stage_rank_, mirror_rank_;
  int num_microbatches_ = 1, mirror_from_ = 0;
};

}  // namespace braid::train
