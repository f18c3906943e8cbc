// Exchanges the numbers of a step, judges them, makes the update and reports.
#include "braid/train/step_update.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"
#include "braid/optim/grad_norm.h"
#include "braid/train/norm_check.h"
#include "braid/train/spike_watch.h"

namespace braid::train {
namespace {

// Numbers of several kinds that one collective sums over ranks. Each kind has a fixed part of one buffer.
class RankSums {
 public:
  struct Part {
    size_t begin = 0, count = 0;
  };
  // Adds this rank's numbers of one kind. All ranks add parts of the same sizes in the same order, before start().
  Part add(const std::vector<double>& own);
  // Starts the sums and returns without waiting for other ranks. Collective over `ranks`, which lives until finish().
  // start() and finish() are each called once.
  void start(Communicator& ranks);
  void finish() { work_.wait_host(); }
  // Returns the sums over all ranks, number by number, in the Communicator's fixed order. Valid as long as this object.
  // REQUIRES: finish() was called.
  std::span<const double> of(Part part) const;

 private:
  std::vector<double> own_;
  at::Tensor sums_;  // set by start()
  Work work_;
};

RankSums::Part RankSums::add(const std::vector<double>& own) {
  const Part part{own_.size(), own.size()};
  own_.insert(own_.end(), own.begin(), own.end());
  return part;
}

void RankSums::start(Communicator& ranks) {
  sums_ = at::tensor(own_, at::kDouble);
  const comm::CallName name("losses and counts");
  work_ = ranks.all_reduce(sums_, ReduceOp::Sum);
}

std::span<const double> RankSums::of(Part part) const {
  return std::span(sums_.const_data_ptr<double>(), own_.size()).subspan(part.begin, part.count);
}

using Parts = std::map<std::string, RankSums::Part>;  // by name; all ranks have the same names

double total(std::span<const double> numbers) { return std::accumulate(numbers.begin(), numbers.end(), 0.0); }
double mean(std::span<const double> numbers) { return total(numbers) / static_cast<double>(numbers.size()); }

// Splits a hash into halves, whose sums over up to 2^21 ranks are exact in float64.
constexpr int kHalf = 32;
std::vector<double> halves(uint64_t hash) {
  return {static_cast<double>(hash & ((uint64_t{1} << kHalf) - 1)), static_cast<double>(hash >> kHalf)};
}
uint64_t from_halves(std::span<const double> sums) {
  return static_cast<uint64_t>(sums[0]) + (static_cast<uint64_t>(sums[1]) << kHalf);
}

Parts added(RankSums& sums, const std::map<std::string, std::vector<double>>& own) {
  Parts parts;
  for (const auto& [name, numbers] : own) parts[name] = sums.add(numbers);
  return parts;
}

std::vector<double> by_layer(const ModelLayers& layers, std::span<const double> by_param) {
  std::vector<double> sums(layers.names.size());
  for (size_t p = 0; p < by_param.size(); ++p) sums[layers.of_param[p]] += by_param[p];
  return sums;
}

optim::GradNormExchange started_norm(RankModel& model) {
  const auto counts = [&](const param::Parameter& param) { return model.counts(param); };
  return {model.params(), model.order(), counts, model.groups().model(), model.groups().shards()};
}

// The numbers of a rank that are all-reduced.
class Summed {
 public:
  // `own_squares` are the squares of this rank's gradient norm, by layer.
  Summed(const RankReport& own, double own_norm, const std::vector<double>& own_squares)
      : losses_(sums_.add(own.losses)),
        squares_(sums_.add({own_norm * own_norm})),
        layer_squares_(sums_.add(own_squares)),
        hash_(sums_.add(halves(own.sample_hash))),
        auxiliary_losses_(added(sums_, own.auxiliaries.losses)),
        auxiliary_counts_(added(sums_, own.auxiliaries.counts)) {}

  void start(Communicator& ranks) { sums_.start(ranks); }
  void finish(StepTotals& numbers) {
    sums_.finish();
    const auto losses = sums_.of(losses_), squares = sums_.of(layer_squares_);
    numbers.losses.assign(losses.begin(), losses.end());
    numbers.all_layer_squares.assign(squares.begin(), squares.end());
    numbers.loss = mean(losses);
    numbers.squares = sums_.of(squares_)[0];
    numbers.sample_hash = from_halves(sums_.of(hash_));
    for (const auto& [name, part] : auxiliary_losses_) numbers.auxiliary_losses[name] = mean(sums_.of(part));
    for (const auto& [name, part] : auxiliary_counts_) {
      const auto counts = sums_.of(part);
      numbers.auxiliary_counts[name].assign(counts.begin(), counts.end());
    }
  }

 private:
  RankSums sums_;
  RankSums::Part losses_, squares_, layer_squares_, hash_;
  Parts auxiliary_losses_, auxiliary_counts_;
};

}  // namespace

double total_loss(const std::vector<double>& losses, Communicator& world) {
  RankSums sums;
  const RankSums::Part all = sums.add(losses);
  sums.start(world);
  sums.finish();
  return total(sums.of(all));
}

StepTotals exchanged(RankModel& model, const RankReport& own) {
  Communicator& ranks = *model.groups().step_report;
  optim::GradNormExchange norm = started_norm(model);
  RowsInFlight rows = start_gathering(own.row, ranks);
  Summed summed(own, norm.own(), by_layer(model.layers(), norm.own_squares()));
  summed.start(ranks);

  StepTotals numbers;
  summed.finish(numbers);
  numbers.grad_norm = norm.finish();
  numbers.layer_squares = by_layer(model.layers(), norm.squares());
  numbers.rows = finish_gathering(rows);
  return numbers;
}

namespace {

// Overflow: float16 gradients overflowed, since the loss scale was too large.
enum class StepOutcome { Update, Overflow, Skip, GoBack, Stop };

double scale_of(const StepParts& parts) { return parts.loss_scaler ? parts.loss_scaler->scale() : 1; }

int num_replicas(const StepParts& parts) {
  const Groups& groups = parts.model.groups();
  return groups.step_report->size() / groups.model().size();
}

// Returns the root mean square of all replicas' norms. It has the same bits on all ranks that exchanged their numbers,
// even if one replica's gradients differ from the others' although they should not.
double norm_of_all(const StepTotals& numbers, const StepParts& parts) {
  return std::sqrt(numbers.squares / num_replicas(parts)) / scale_of(parts);
}

// The numbers on which the decision of all ranks depends.
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
  for (int rank = 0; rank < num_told; ++rank) {  // rows of one replica are numbered like the first replica's ranks
    const double bubble = bubble_fraction(numbers.rows, mesh.peers(rank, {mesh::Axis::Pipe}));
    report.bubble_fraction = std::max(report.bubble_fraction, bubble);
  }
}

// Names the first microbatch whose loss is not finite, and its data rank; "" if there is none.
std::string where_loss_is_not_finite(const StepTotals& numbers, const StepParts& parts) {
  const auto& losses = numbers.losses;
  const auto found = std::find_if_not(losses.begin(), losses.end(), [](double loss) { return std::isfinite(loss); });
  if (found == losses.end()) return "";
  const auto micro = found - losses.begin();
  const std::vector<int>& first = parts.first_microbatches;
  const bool alone = num_replicas(parts) == 1;  // only this replica's losses are known
  const int64_t data_rank =
      alone ? parts.model.groups().at[mesh::Axis::Data] : std::ranges::upper_bound(first, micro) - first.begin() - 1;
  return cat("first in microbatch ", micro, " (data rank ", data_rank, ")");
}

constexpr const char* kSomeUpdated = "some parameters are updated";

std::string sentences_of(std::vector<std::string> sentences) {
  std::erase(sentences, "");
  return joined(sentences, "; ");
}

[[noreturn]] void stop(const StepParts& parts, const StepReport& report) {
  std::vector<std::string> sentences = {report.spike};
  if (parts.on_spike == OnSpike::Skip) {
    sentences.push_back(cat("the ", SpikeWatch::kMostSkips, " steps before it were skipped"));
  }
  sentences.push_back(parts.time == UpdateTime::DuringBackward
                          ? std::string(kSomeUpdated)
                          : cat("the parameters are those of step ", report.step - 1));
  throw RunError(cat("step ", report.step, ": ", sentences_of(std::move(sentences))));
}

void compare_norm(const StepTotals& numbers, const StepParts& parts, int64_t step) {
  const Groups& groups = parts.model.groups();
  const bool alike = parts.gradients.gradients() == sync::GradientsOf::AllReplicas;
  const std::string fault = norm_fault(parts.model, numbers.grad_norm, alike ? *groups.step_report : groups.model());
  if (fault.empty()) return;
  parts.optimizer.withdraw();
  const char* const state = parts.time == UpdateTime::DuringBackward ? kSomeUpdated : "nothing is updated";
  throw RunError(cat("step ", step, ": ", fault, "; ", state, " (train.check)"));
}

}  // namespace

void finish_step(const StepParts& parts, const RankReport& own, StepReport& report) {
  StepTotals numbers = exchanged(parts.model, own);
  if (parts.norm_use == NormUse::Compare) compare_norm(numbers, parts, report.step);
  const double scale = scale_of(parts);
  numbers.grad_norm /= scale;
  add_numbers(numbers, parts, report);
  const Judged judged{report.loss, norm_of_all(numbers, parts)};
  report.spike = parts.spikes.spike(judged.loss, judged.norm);
  const StepOutcome outcome = outcome_of(judged, report.spike, parts);
  if (outcome != StepOutcome::Update) parts.optimizer.withdraw();
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
