// Who owns a stage. It does not check that the schedule is sound (validate.h).
#include "braid/schedule/schedule.h"

#include "braid/base/errors.h"

namespace braid {

int Schedule::rank_of(int stage, int micro) const {
  check(stage >= 0 && stage < static_cast<int>(stage_rank.size()), "a stage outside the schedule");
  return mirrored() && micro >= mirror_from ? mirror_rank[stage] : stage_rank[stage];
}

}  // namespace braid
