// The owners of stages. validate.h checks that a schedule is valid.
#include "braid/schedule/schedule.h"

#include "braid/base/errors.h"

namespace braid {

int Schedule::rank_of(int stage, int micro) const {
  check(stage >= 0 && stage < static_cast<int>(stage_rank.size()), "a stage outside the schedule");
  return mirrored() && micro >= mirror_from ? mirror_rank[stage] : stage_rank[stage];
}

std::vector<StageCopy> stage_copies(const Schedule& schedule) {
  const int micros = schedule.num_microbatches;
  std::vector<StageCopy> copies;
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    const int rank = schedule.stage_rank[stage];
    const int mirror = schedule.mirrored() ? schedule.mirror_rank[stage] : rank;
    copies.push_back({stage, rank, 0, mirror == rank ? micros : schedule.mirror_from});
    if (mirror != rank) copies.push_back({stage, mirror, schedule.mirror_from, micros});
  }
  return copies;
}

}  // namespace braid
