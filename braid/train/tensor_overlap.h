// Chooses whether the communication of tensor ranks overlaps products of backward (mesh.tensor_overlap), from measured
// steps if the configuration asks for it. The choice never changes a result.
#pragma once

#include <optional>
#include <string>

#include "braid/schedule/schedule.h"
#include "braid/spec/run_spec.h"
#include "braid/sync/sync_tuner.h"
#include "braid/train/rank_model.h"

namespace braid::train {

class TensorOverlap {
 public:
  static constexpr int kStepsEach = 3;

  // `model` outlives this. Steps are measured only if there are tensor ranks and `schedule` has something that
  // overlaps.
  TensorOverlap(const MeshSpec& mesh, const Schedule& schedule, RankModel& model);

  bool done() const { return !trials_; }
  // Ends a step that took `seconds`. If it was the last one of the trials, returns the choice and the reason; the
  // slowest rank's medians decide. All ranks of groups().step_report call it at the same steps; it is collective.
  // REQUIRES: not done.
  std::optional<std::string> step_over(double seconds);

 private:
  void use(param::ReductionOverlap overlap);
  void try_candidate(int candidate);

  RankModel& model_;
  std::optional<sync::TimedTrials> trials_;
};

}  // namespace braid::train
