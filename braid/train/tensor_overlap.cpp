// Tries both settings in turn.
#include "braid/train/tensor_overlap.h"

#include <algorithm>
#include <vector>

#include "braid/base/text.h"
#include "braid/comm/agree.h"

namespace braid::train {
namespace {

using param::ReductionOverlap;

// Weight gradients overlap reductions in full backwards. Under sequence parallelism gathers overlap input gradients in
// others too.
bool has_overlap(const MeshSpec& mesh, const Schedule& schedule) {
  const auto is_full = [](const Action& action) { return action.op == Op::FullBackward; };
  const auto has_full = [&](const Program& program) { return std::ranges::any_of(program, is_full); };
  return mesh.tensor > 1 && (mesh.sequence_parallel || std::ranges::any_of(schedule.programs, has_full));
}

}  // namespace

TensorOverlap::TensorOverlap(const MeshSpec& mesh, const Schedule& schedule, RankModel& model) : model_(model) {
  use(mesh.tensor_overlap == OverlapChoice::Off ? ReductionOverlap::Off : ReductionOverlap::On);
  if (mesh.tensor_overlap != OverlapChoice::Auto || !has_overlap(mesh, schedule)) return;
  trials_.emplace(2, kStepsEach, sync::TimedTrials::Pattern::Alternating);
  try_candidate(trials_->candidate());
}

void TensorOverlap::use(ReductionOverlap overlap) {
  const Groups& groups = model_.groups();
  for (const int stage : groups.layout.stages_of(groups.at[mesh::Axis::Pipe])) {
    model_.weight_grads(stage).set_overlap(overlap);
  }
}

void TensorOverlap::try_candidate(int candidate) { use(candidate == 0 ? ReductionOverlap::On : ReductionOverlap::Off); }

std::optional<std::string> TensorOverlap::step_over(double seconds) {
  trials_->record(seconds);
  if (!trials_->done()) {
    try_candidate(trials_->candidate());
    return std::nullopt;
  }
  Communicator& ranks = *model_.groups().step_report;
  const auto medians = comm::agree(ranks, "times of overlap", trials_->medians(), ReduceOp::Max);
  const int best = medians[0] <= medians[1] ? 0 : 1;
  try_candidate(best);
  trials_.reset();
  const auto milliseconds = [&](int candidate) { return cat(fixed(1e3 * medians[candidate], 2), " ms"); };
  return cat("mesh.tensor_overlap = \"", best == 0 ? "on" : "off", "\": ", milliseconds(0),
             " a step when collectives of tensor ranks travel during products of backward, ", milliseconds(1),
             " when products wait for them");
}

}  // namespace braid::train
