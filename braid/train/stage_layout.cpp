// Looking stages up both ways.
#include "braid/train/stage_layout.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid {

StageLayout::StageLayout(const Schedule& schedule)
    : stage_rank_(schedule.stage_rank),
      mirror_rank_(schedule.mirror_rank),
      num_microbatches_(schedule.num_microbatches),
      mirror_from_(schedule.mirror_from) {
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    check(!stages_of(rank).empty(), "every pipeline rank holds a stage");
    check(stages_of(rank) == stages_of(pair_of(rank)), "the two ranks of a mirrored stage hold the same stages");
  }
  check(!mirrored() || 2 * mirror_from_ == num_microbatches_, "both directions have the same number of microbatches");
}

StageLayout StageLayout::single() {
  Schedule schedule;
  schedule.num_stages = schedule.num_microbatches = 1;
  schedule.stage_rank = {0};
  schedule.programs.resize(1);
  return StageLayout(schedule);
}

bool StageLayout::holds(int rank, int stage) const {
  return stage_rank_[stage] == rank || (mirrored() && mirror_rank_[stage] == rank);
}

std::vector<int> StageLayout::stages_of(int rank) const {
  std::vector<int> held;
  for (int stage = 0; stage < num_stages(); ++stage) {
    if (holds(rank, stage)) held.push_back(stage);
  }
  return held;
}

MicroRange StageLayout::microbatches(int rank, int stage) const {
  check(holds(rank, stage), "a stage on a rank that holds it");
  if (!mirrored()) return {0, num_microbatches_};
  return stage_rank_[stage] == rank ? MicroRange{0, mirror_from_} : MicroRange{mirror_from_, num_microbatches_};
}

int StageLayout::pair_of(int rank) const {
  if (!mirrored()) return rank;
  const int stage = stages_of(rank).front();
  return std::min(stage_rank_[stage], mirror_rank_[stage]);
}

}  // namespace braid
