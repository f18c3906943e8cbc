// The owners of stages, and the layout of a schedule.
#include "braid/schedule/generators/stage_placement.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::schedule {

std::string nearest_number(int value, NumberRange range, const std::function<bool(int)>& valid) {
  const auto [low, high] = range;
  const int start = std::clamp(value, low, std::max(low, high));
  for (int away = 0; start - away >= low || start + away <= high; ++away) {
    for (int number : {start + away, start - away}) {
      if (number >= low && number <= high && valid(number)) return std::to_string(number);
    }
  }
  return "";
}

int owner_of_stage(StagePlacement placement, int num_ranks, int stage) {
  const bool turned = placement == StagePlacement::V && stage >= num_ranks;
  return turned ? 2 * num_ranks - 1 - stage : stage % num_ranks;
}

Schedule laid_out(const Layout& layout) {
  check(layout.ranks >= 1 && layout.microbatches >= 1 && layout.chunks >= 1,
        "a schedule needs a rank, a microbatch and a stage");
  Schedule schedule;
  schedule.name = layout.name;
  schedule.num_stages = layout.ranks * layout.chunks;
  schedule.num_microbatches = layout.microbatches;
  schedule.programs.resize(layout.ranks);
  for (int stage = 0; stage < schedule.num_stages; ++stage) {
    schedule.stage_rank.push_back(owner_of_stage(layout.placement, layout.ranks, stage));
  }
  if (layout.placement == StagePlacement::Mirrored) {
    schedule.mirror_rank.assign(schedule.stage_rank.rbegin(), schedule.stage_rank.rend());
    schedule.mirror_from = layout.microbatches / 2;
  }
  const size_t actions = static_cast<size_t>(layout.passes) * layout.chunks * layout.microbatches;
  for (auto& program : schedule.programs) program.reserve(actions);
  return schedule;
}

}  // namespace braid::schedule
