// Guess or wait, judge, put right, report.
#include "braid/train/step_update.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {

StepUpdate::StepUpdate(UpdateTime time, double clip_norm, const Parts& parts)
    : time_(time), clip_norm_(clip_norm), parts_(parts) {
  if (time == UpdateTime::Guessed) kept_ = std::make_unique<KeptState>(parts.model.params(), parts.optimizer);
}

// The norm of all is at least that of a part. Whether another rank guessed follows from its part, so nobody tells.
bool StepUpdate::guesses(double own_norm) const {
  return time_ == UpdateTime::Guessed && std::isfinite(own_norm) && clip_scale(own_norm / scale(), clip_norm_) == 1;
}

void StepUpdate::begin(const StepExchange::Own& own, double lr) {
  exchange_.emplace(parts_.model, own);
  lr_ = lr;
  guessed_ = guesses(exchange_->own_norm());
  if (!guessed_) {
    judge();
    return make_the_update();
  }
  kept_->keep();
  update(1 / scale());
}

StepUpdate::Verdict StepUpdate::validate() {
  judge();
  const bool right = outcome_ == Outcome::Update && clip_ == 1;
  if (std::exchange(guessed_, false) && !right) {
    kept_->restore();
    make_the_update();
  }
  return num_rollbacks_ > 0 ? Verdict::StartOver : Verdict::GoOn;
}

void StepUpdate::judge() {
  if (!exchange_) return;
  numbers_ = exchange_->finish();
  exchange_.reset();
  numbers_.grad_norm /= scale();
  const bool finite = std::isfinite(numbers_.grad_norm) && std::isfinite(numbers_.squares);
  outcome_ = finite ? Outcome::Update : Outcome::Skip;
  if (!std::isfinite(numbers_.loss) || (!finite && !parts_.loss_scaler)) outcome_ = Outcome::Diverge;
  clip_ = finite ? clip_scale(numbers_.grad_norm, clip_norm_) : 1;
  const auto& norms = numbers_.own_norms;
  const bool right = outcome_ == Outcome::Update && clip_ == 1;
  num_rollbacks_ = right ? 0 : std::count_if(norms.begin(), norms.end(), [&](double own) { return guesses(own); });
}

void StepUpdate::make_the_update() {
  if (time_ == UpdateTime::Elsewhere) return;
  if (outcome_ == Outcome::Update) return update(clip_ / scale());
  parts_.replication.updated();
}

void StepUpdate::update(double grad_scale) {
  const OptimizerStep step{lr_, grad_scale};
  if (parts_.replication.update(step) == UpdateBy::Rank) parts_.optimizer.step(step);
  parts_.replication.updated();
}

// Where replicas have gradients of their own, the root of their norms' mean square: the same on all ranks that tell
// each other of the step.
double StepUpdate::norm_of_replicas() const {
  if (parts_.replication.gradients() == GradientsOf::AllReplicas) return numbers_.grad_norm;
  const RankGroups& groups = parts_.model.groups();
  const int num_replicas = groups.step_report->size() / groups.model->size();
  return std::sqrt(numbers_.squares / num_replicas) / scale();
}

void StepUpdate::conclude(StepReport& report) {
  check(!exchange_ && !guessed_, "a step is concluded when it has been validated");
  wish_ = numbers_.wish;  // not before, though this rank may have known it: all ranks act on it at the same step
  report.loss = numbers_.loss;
  report.sample_hash = numbers_.sample_hash;
  report.grad_norm = norm_of_replicas();
  report.loss_scale = scale();
  report.learning_rate = lr_;
  report.rollbacks = num_rollbacks_;
  report.skipped = outcome_ == Outcome::Skip;
  for (const BusyRow& row : numbers_.rows) report.memory.push_back(row.memory);
  const DeviceMesh& mesh = parts_.model.groups().mesh;
  const int num_told = static_cast<int>(numbers_.rows.size());
  for (int rank = 0; rank < num_told; ++rank) {  // of one replica: as the first replica's ranks are counted
    const double bubble = bubble_fraction(numbers_.rows, mesh.peers(rank, {Axis::Pipe}));
    report.bubble_fraction = std::max(report.bubble_fraction, bubble);
  }
  if (outcome_ == Outcome::Diverge) {
    throw RunError(cat("step ", report.step, ": loss ", report.loss, ", gradient norm ", report.grad_norm,
                       ": not finite; the parameters are those of step ", report.step - 1));
  }
  if (parts_.loss_scaler) parts_.loss_scaler->update(report.skipped ? Gradients::Overflowed : Gradients::Finite);
}

}  // namespace braid
