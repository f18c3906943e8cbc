// Judge, update, report.
#include "braid/train/step_update.h"

#include <algorithm>
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/optim/grad_norm.h"

namespace braid {
namespace {

enum class StepOutcome { Update, Skip, Diverge };

double scale_of(const StepParts& parts) { return parts.loss_scaler ? parts.loss_scaler->scale() : 1; }

StepOutcome outcome_of(const StepNumbers& numbers, const StepParts& parts) {
  const bool finite = std::isfinite(numbers.grad_norm) && std::isfinite(numbers.squares);
  if (!std::isfinite(numbers.loss) || (!finite && !parts.loss_scaler)) return StepOutcome::Diverge;
  return finite ? StepOutcome::Update : StepOutcome::Skip;
}

void make_update(const StepParts& parts, StepOutcome outcome, const OptimizerStep& step) {
  if (parts.time == UpdateTime::WithinTheStep) return;
  if (outcome == StepOutcome::Update && parts.parameters.update(step) == UpdateBy::Rank) parts.optimizer.step(step);
  parts.parameters.updated();
}

// Where replicas have gradients of their own, the root of their norms' mean square: the same on all ranks that tell
// each other of the step.
double norm_of_replicas(const StepNumbers& numbers, const StepParts& parts) {
  if (parts.gradients.gradients() == GradientsOf::AllReplicas) return numbers.grad_norm;
  const RankGroups& groups = parts.model.groups();
  const int num_replicas = groups.step_report->size() / groups.model->size();
  return std::sqrt(numbers.squares / num_replicas) / scale_of(parts);
}

void add_numbers(const StepNumbers& numbers, const StepParts& parts, StepReport& report) {
  report.loss = numbers.loss;
  report.sample_hash = numbers.sample_hash;
  report.grad_norm = norm_of_replicas(numbers, parts);
  report.loss_scale = scale_of(parts);
  report.auxiliary_losses = numbers.auxiliary_losses;
  report.auxiliary_counts = numbers.auxiliary_counts;
  for (const BusyRow& row : numbers.rows) report.memory.push_back(row.memory);
  const DeviceMesh& mesh = parts.model.groups().mesh;
  const int num_told = static_cast<int>(numbers.rows.size());
  for (int rank = 0; rank < num_told; ++rank) {  // of one replica: as the first replica's ranks are counted
    const double bubble = bubble_fraction(numbers.rows, mesh.peers(rank, {Axis::Pipe}));
    report.bubble_fraction = std::max(report.bubble_fraction, bubble);
  }
}

}  // namespace

void finish_step(const StepParts& parts, const OwnNumbers& own, StepReport& report) {
  StepNumbers numbers = exchanged(parts.model, own);
  const double scale = scale_of(parts);
  numbers.grad_norm /= scale;
  const StepOutcome outcome = outcome_of(numbers, parts);
  make_update(parts, outcome, {report.learning_rate, clip_scale(numbers.grad_norm, parts.clip_norm) / scale});
  add_numbers(numbers, parts, report);
  report.skipped = outcome == StepOutcome::Skip;
  if (outcome == StepOutcome::Diverge) {
    throw RunError(cat("step ", report.step, ": loss ", report.loss, ", gradient norm ", report.grad_norm,
                       ": not finite; the parameters are those of step ", report.step - 1));
  }
  if (parts.loss_scaler) parts.loss_scaler->update(report.skipped ? Gradients::Overflowed : Gradients::Finite);
}

}  // namespace braid
