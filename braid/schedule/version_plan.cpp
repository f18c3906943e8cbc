// The plan of weight versions. It is made in one pass along each program, which counts updates.
#include "braid/schedule/version_plan.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::schedule {

VersionPlan::VersionPlan(const Schedule& schedule, VersionRule rule) {
  version_.assign(schedule.num_stages, std::vector<int>(schedule.num_microbatches, 0));
  std::vector<std::vector<int>> updates(schedule.num_stages);  // by stage: the microbatch of each update
  for (const Program& program : schedule.programs) {
    for (const Action& action : program) {
      if (action.op == Op::Update) updates[action.stage].push_back(action.micro);
      if (action.op == Op::Forward)
        version_[action.stage][action.micro] = static_cast<int>(updates[action.stage].size());
    }
  }
  asynchronous_ = !updates[0].empty();
  last_micro_ = asynchronous_ ? updates[0] : std::vector<int>{schedule.num_microbatches - 1};
  for (const auto& of_stage : updates) {
    check(!asynchronous_ || of_stage == last_micro_, "all stages update after the same microbatches");
  }
  check(std::is_sorted(last_micro_.begin(), last_micro_.end()) && last_micro_.back() + 1 == schedule.num_microbatches,
        "updates come in the order of microbatches, the last after them all");
  for (int update = 0; update < num_updates(); ++update) update_of_.resize(update_end(update), update);
  for (auto& of_stage : version_) {
    for (int micro = 0; micro < schedule.num_microbatches; ++micro) {
      if (rule == VersionRule::Vertical) of_stage[micro] = version_[0][micro];
      if (rule == VersionRule::DoubleBuffered) of_stage[micro] = std::max(update_of(micro) - 1, 0);
    }
  }
}

int VersionPlan::most_stale() const {
  int most = 0;
  for (size_t stage = 0; stage < version_.size(); ++stage) {
    for (size_t micro = 0; micro < update_of_.size(); ++micro) {
      most = std::max(most, staleness(static_cast<int>(stage), static_cast<int>(micro)));
    }
  }
  return most;
}

}  // namespace braid::schedule
