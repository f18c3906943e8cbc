// The version of its weights that a stage uses for each microbatch, and the update that includes the microbatch's
// gradient. Both follow from a schedule's UPDATE actions. Version v of a stage is its state after v updates of a step.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

enum class VersionRule {
  Own,       // the stage's newest at its forward: weight stashing (Narayanan et al., "PipeDream" 2019, section 3.3)
  Vertical,  // on all stages, the first stage's newest at its forward: vertical sync (same section)
  DoubleBuffered,  // version max(update - 1, 0) on all stages (Narayanan et al., "PipeDream-2BW" 2021, section 3.1)
};

class VersionPlan {
 public:
  // A schedule without UPDATE has one update at its end, which includes all microbatches; these use version 0.
  VersionPlan(const Schedule& schedule, VersionRule rule);

  bool asynchronous() const { return asynchronous_; }
  int num_updates() const { return static_cast<int>(last_micro_.size()); }
  // Returns the version that `stage` uses for `micro`, forward and backward.
  int version(int stage, int micro) const { return version_[stage][micro]; }
  // Return the update that includes a microbatch, and the microbatches of an update: [update_begin, update_end).
  int update_of(int micro) const { return update_of_[micro]; }
  int update_begin(int update) const { return update == 0 ? 0 : last_micro_[update - 1] + 1; }
  int update_end(int update) const { return last_micro_[update] + 1; }
  // Returns the staleness of a gradient in updates: the version it changes minus the one it was computed with.
  int staleness(int stage, int micro) const { return update_of(micro) - version(stage, micro); }
  int most_stale() const;

 private:
  bool asynchronous_ = false;
  std::vector<int> last_micro_;            // by update
  std::vector<int> update_of_;             // by microbatch
  std::vector<std::vector<int>> version_;  // by stage, microbatch
};

}  // namespace braid::schedule
