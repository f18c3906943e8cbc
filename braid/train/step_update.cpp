// Judge, update, report.
#include "braid/train/step_update.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/optim/grad_norm.h"
#include "braid/train/spike_watch.h"

namespace braid::train {
namespace {

// Overflow: of float16, whose scale was too large.
enum class StepOutcome { Update, Overflow, Skip, GoBack, Stop };

double scale_of(const StepParts& parts) { return parts.loss_scaler ? parts.loss_scaler->scale() : 1; }

int num_replicas(const StepParts& parts) {
  const RankGroups& groups = parts.model.groups();
  return groups.step_report->size() / groups.model->size();
}

// The root of the mean square of all replicas' norms: the same bits on all ranks that told each other, even where one
// replica's gradients are not as the others' although they should be.
double norm_of_all(const StepTotals& numbers, const StepParts& parts) {
  return std::sqrt(numbers.squares / num_replicas(parts)) / scale_of(parts);
}

// The numbers that all ranks decide by.
struct Judged {
  double loss, norm;
  bool finite() const { return std::isfinite(loss) && std::isfinite(norm); }
};

StepOutcome outcome_of(const Judged& step, const std::string& spike, const StepParts& parts) {
  if (spike.empty()) return StepOutcome::Update;
  if (parts.loss_scaler && std::isfinite(step.loss) && !std::isfinite(step.norm)) return StepOutcome::Overflow;
  switch (parts.on_spike) {
    case OnSpike::Skip:
      return parts.spikes.may_skip() ? StepOutcome::Skip : StepOutcome::Stop;
    case OnSpike::Rollback:
      return StepOutcome::GoBack;
    case OnSpike::Stop:
      break;
  }
  return StepOutcome::Stop;
}

void make_update(const StepParts& parts, StepOutcome outcome, const optim::OptimizerStep& step) {
  if (parts.time == UpdateTime::WithinTheStep) return;
  if (outcome == StepOutcome::Update && parts.parameters.update(step) == sync::UpdateBy::Rank)
    parts.optimizer.step(step);
  parts.parameters.updated();
}

double norm_of_replicas(const StepTotals& numbers, const StepParts& parts) {
  return parts.gradients.gradients() == sync::GradientsOf::AllReplicas ? numbers.grad_norm
                                                                       : norm_of_all(numbers, parts);
}

void add_layer_norms(const StepTotals& numbers, const StepParts& parts, StepReport& report) {
  const bool own = parts.gradients.gradients() == sync::GradientsOf::OwnReplica;
  const int count = own ? num_replicas(parts) : 1;
  const std::vector<double>& squares = own ? numbers.all_layer_squares : numbers.layer_squares;
  const std::vector<std::string>& names = parts.model.layers().names;
  for (size_t i = 0; i < names.size(); ++i) {
    report.layer_grad_norms.emplace_back(names[i], std::sqrt(squares[i] / count) / scale_of(parts));
  }
}

void add_numbers(const StepTotals& numbers, const StepParts& parts, StepReport& report) {
  report.loss = numbers.loss;
  report.sample_hash = numbers.sample_hash;
  report.grad_norm = norm_of_replicas(numbers, parts);
  add_layer_norms(numbers, parts, report);
  report.loss_scale = scale_of(parts);
  report.auxiliary_losses = numbers.auxiliary_losses;
  report.auxiliary_counts = numbers.auxiliary_counts;
  for (const BusyRow& row : numbers.rows) report.memory.push_back(row.memory);
  const mesh::DeviceMesh& mesh = parts.model.groups().mesh;
  const int num_told = static_cast<int>(numbers.rows.size());
  for (int rank = 0; rank < num_told; ++rank) {  // of one replica: as the first replica's ranks are counted
    const double bubble = bubble_fraction(numbers.rows, mesh.peers(rank, {mesh::Axis::Pipe}));
    report.bubble_fraction = std::max(report.bubble_fraction, bubble);
  }
}

// The first microbatch whose loss is not finite, and whose it is; empty where there is none.
std::string where_loss_is_not_finite(const StepTotals& numbers, const StepParts& parts) {
  const auto& losses = numbers.losses;
  const auto found = std::find_if_not(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (found == losses.end()) return "";
  const auto micro = found - losses.begin();
  const std::vector<int>& first = parts.first_microbatches;
  const bool alone = num_replicas(parts) == 1;  // and told by nobody else
  const int64_t data_rank =
      alone ? parts.model.groups().at[mesh::Axis::Data] : std::ranges::upper_bound(first, micro) - first.begin() - 1;
  return cat("first in microbatch ", micro, " (data rank ", data_rank, ")");
}

std::string sentences_of(std::vector<std::string> sentences) {
  std::erase(sentences, "");
  return joined(sentences, "; ");
}

[[noreturn]] void stop(const StepParts& parts, const StepReport& report) {
  std::vector<std::string> sentences = {report.spike};
  if (parts.on_spike == OnSpike::Skip) {
    sentences.push_back(cat("the ", SpikeWatch::kMostSkips, " steps before it were skipped"));
  }
  sentences.push_back(cat("the parameters are those of step ", report.step - 1));
  throw RunError(cat("step ", report.step, ": ", sentences_of(std::move(sentences))));
}

}  // namespace

void finish_step(const StepParts& parts, const RankReport& own, StepReport& report) {
  StepTotals numbers = exchanged(parts.model, own);
  const double scale = scale_of(parts);
  numbers.grad_norm /= scale;
  add_numbers(numbers, parts, report);
  const Judged judged{report.loss, norm_of_all(numbers, parts)};
  report.spike = parts.spikes.spike(judged.loss, judged.norm);
  const StepOutcome outcome = outcome_of(judged, report.spike, parts);
  make_update(parts, outcome, {report.learning_rate, optim::clip_scale(numbers.grad_norm, parts.clip_norm) / scale});
  if (outcome == StepOutcome::Overflow) report.spike.clear();
  if (!report.spike.empty() && !judged.finite()) {
    report.spike =
        sentences_of({report.spike, where_loss_is_not_finite(numbers, parts), where_not_finite(parts.model)});
  }
  if (outcome == StepOutcome::Stop) stop(parts, report);
  if (outcome == StepOutcome::GoBack) return;
  if (outcome == StepOutcome::Update) parts.spikes.updated(judged.loss, judged.norm);
  if (outcome == StepOutcome::Skip) parts.spikes.skipped();
  report.skipped = outcome != StepOutcome::Update;
  if (!parts.loss_scaler) return;
  parts.loss_scaler->update(std::isfinite(judged.norm) ? optim::Gradients::Finite : optim::Gradients::Overflowed);
}

}  // namespace braid::train
