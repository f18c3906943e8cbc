// Looks up stages by rank and ranks by stage.
#include "braid/train/stage_layout.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::train {

namespace {

std::vector<int> stages_on(const Schedule& schedule, int rank) {
  std::vector<int> held;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const bool mirrored = schedule.mirrored() && schedule.mirror_rank[stage] == rank;
    if (schedule.stage_rank[stage] == rank || mirrored) held.push_back(stage);
  }
  return held;
}

}  // namespace

std::vector<std::string> layout_faults(const Schedule& schedule) {
  std::vector<std::string> faults;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    if (stages_on(schedule, rank).empty()) faults.push_back(cat("rank ", rank, " holds no stage"));
  }
  if (!schedule.mirrored()) return faults;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const int one = schedule.stage_rank[stage], other = schedule.mirror_rank[stage];
    if (stages_on(schedule, one) == stages_on(schedule, other)) continue;
    faults.push_back(cat("ranks ", one, " and ", other, " share stage ", stage, " but not all their stages"));
  }
  if (2 * schedule.mirror_from != schedule.num_microbatches) {
    faults.push_back(cat(schedule.mirror_from, " of ", counted(schedule.num_microbatches, "microbatch"),
                         " go one way: it must be half of them"));
  }
  return faults;
}

StageLayout::StageLayout(const Schedule& schedule)
    : stage_rank_(schedule.stage_rank),
      mirror_rank_(schedule.mirror_rank),
      backwards_(schedule.backwards),
      num_microbatches_(schedule.num_microbatches),
      mirror_from_(schedule.mirror_from) {
  check(layout_faults(schedule).empty(),
        "every rank holds stages, mirrored ones in pairs of ranks and halves of a step");
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

}  // namespace braid::train
