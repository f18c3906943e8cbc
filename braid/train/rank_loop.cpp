// Makes steps, agrees on requests with the other ranks, and notifies the observer on rank 0.
#include "braid/train/rank_loop.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/agree.h"
#include "braid/comm/rank_activity.h"
#include "braid/model/model_flops.h"
#include "braid/spec/run_spec.h"
#include "braid/spec/trained.h"
#include "braid/train/compute_device.h"
#include "braid/train/measuring.h"
#include "braid/train/predicted_run.h"
#include "braid/train/run_rates.h"

namespace braid::train {
namespace {

// Number of steps between two agreements of replicas that run apart, and thus the longest delay of a request to stop.
constexpr int64_t kStepsApart = 32;

// The strongest request of all ranks, and whether any rank is busy with a save.
struct RankRequest {
  RunRequest request;
  bool busy;
};
RankRequest strongest_of_all(RankRequest mine, Communicator& world) {
  const std::vector<int64_t> all =
      comm::agree(world, "request", std::vector<int64_t>{static_cast<int64_t>(mine.request), mine.busy}, ReduceOp::Max);
  return {static_cast<RunRequest>(all[0]), all[1] != 0};
}

// Measuring for a prediction takes about half a second. A run of small steps is predicted if at least this many steps
// remain. The limit is a number of steps, not a time, so that equal runs behave equally.
constexpr int64_t kManySmallSteps = 1000;

bool is_multiple(int64_t step, int every) { return every > 0 && step % every == 0; }

}  // namespace

RunRequest request_of(const RunControls& controls) {
  if (controls.stop_requested()) return RunRequest::Stop;
  return controls.takes_save_request() ? RunRequest::Save : RunRequest::GoOn;
}

RankLoop::RankLoop(const SharedByRanks& shared, Trainer& trainer, Communicator& world)
    : shared_(shared),
      start_(shared.start),
      train_(start_.spec.train),
      trainer_(trainer),
      world_(world),
      checkpoints_({start_, shared.observer, shared.begun_with}, trainer, world) {}

// Makes a call of all ranks. If ranks are lost in it, the others take over their work and make it again.
template <class Call>
auto RankLoop::together(const Call& call) {
  for (;;) {
    try {
      return call();
    } catch (const comm::MembersLost&) {
      doing(cat("work of lost workers after step ", trainer_.num_steps()));
      trainer_.take_over();
      tell_of_lost();
    }
  }
}

void RankLoop::tell_of_lost() {
  for (const LostWorker& lost : trainer_.take_lost()) notify([&] { shared_.observer.on_lost_worker(lost); });
}

RunEnd RankLoop::run() {
  shared_.controls.on_begin();
  checkpoints_.begin();
  if (peak_.per_rank > 0) notify([&] { shared_.observer.on_peak(peak_); });
  if (trainer_.owes_evaluation && !evaluation_is_known()) evaluate();
  bool stops = false;
  while (!stops && trainer_.num_steps() < train_.steps) {
    doing(cat("step ", trainer_.num_steps() + 1));
    const StepReport report = trainer_.step();
    if (train_.on_spike == OnSpike::Rollback && !report.spike.empty()) return ended_by(report);
    report_step(report);
    check_replicas();
    report_graphs();
    report_choices();
    const RunRequest request = agreed_request();
    stops = request == RunRequest::Stop;
    if (stops || trainer_.num_steps() == train_.steps) break;
    if (peak_.per_rank == 0 && worth_measuring_peak()) measure_peak();
    if (!has_predicted_ && worth_predicting()) predict();
    trainer_.begin_losses();
    stops = stops_after_work_between_steps(request);
  }
  return ended(stops && trainer_.num_steps() < train_.steps);
}

RunEnd RankLoop::ended(bool interrupted) {
  RunEnd end;
  end.interrupted = interrupted;
  // Save at once: SIGTERM is often followed by SIGKILL.
  if (!together([&] { return checkpoints_.is_saved(trainer_.num_steps()); })) save();
  checkpoints_.finish();  // first, so that the weights are saved even if a later call fails
  end.checkpoint = ckpt::checkpoint_folder(train_.out, trainer_.num_steps());
  if (!interrupted && evaluation_.step != trainer_.num_steps()) evaluate();
  if (!interrupted) end.evaluation = evaluation_;
  end.num_steps = trainer_.num_steps();
  end.timeline = together([&] { return trainer_.timeline(); });
  return end;
}

// Finishes a save under way, which is of an earlier step than the spike.
RunEnd RankLoop::ended_by(const StepReport& spike) {
  checkpoints_.finish();
  spike_ = cat("step ", spike.step, ": ", spike.spike);
  return {};
}

std::string RankLoop::saved() const {
  return checkpoints_.saved_step() < 0 ? "" : ckpt::checkpoint_folder(train_.out, checkpoints_.saved_step());
}

// Called before anything is saved.
void RankLoop::check_replicas() {
  owes_check_ = owes_check_ || is_multiple(trainer_.num_steps(), train_.check_replicas);
  if (owes_check_ && trainer_.check_replicas()) owes_check_ = false;
}

void RankLoop::doing(const std::string& what) const {
  if (comm::RankActivity* activity = world_.activity()) activity->begin(what);
}

void RankLoop::report_step(StepReport report) {
  if (comm::RankActivity* activity = world_.activity()) {
    activity->end_of_step(report.seconds);
    activity->holds(param::account_text(world_.rank()));
  }
  if (spec::replicas_run_apart(start_.spec)) own_losses_.push_back(report.loss);
  const double flops_of_rank = report.tokens_per_second / world_.size() * spec::model_flops_per_token(start_.spec);
  raise_peak(flops_of_rank);
  report.utilisation = model::model_flop_utilisation(flops_of_rank, peak_.per_rank);
  notify([&] { shared_.observer.on_step(report); });
}

// Raises the peak to the rate of a step. No step exceeds the machine's peak, so a lower peak was given wrongly, or
// measured while other programs ran.
void RankLoop::raise_peak(double reached_per_rank) {
  if (peak_.per_rank == 0 || reached_per_rank <= peak_.per_rank) return;
  peak_ = {reached_per_rank, PeakSource::Step, 0};
  notify([&] { shared_.observer.on_peak(peak_); });
}

// Returns the request of this rank and of its servers' ranks. Clocks differ, so only rank 0 decides that a save is due
// by time. It requests each such save once.
RunRequest RankLoop::request() {
  const RunRequest called = std::max(request_of(shared_.controls), trainer_.take_request());
  if (called != RunRequest::GoOn) return called;
  if (world_.rank() != 0 || train_.save_minutes == 0 || save_is_due_) return RunRequest::GoOn;
  save_is_due_ = now_seconds() - checkpoints_.saved_at() >= 60 * train_.save_minutes;
  return save_is_due_ ? RunRequest::Save : RunRequest::GoOn;
}

// Returns the request on which all ranks agree. Replicas that run apart agree only every kStepsApart steps.
RunRequest RankLoop::agreed_request() {
  if (spec::replicas_run_apart(start_.spec) && trainer_.num_steps() % kStepsApart != 0) return RunRequest::GoOn;
  return agreed(request());
}

// Returns the strongest request of all ranks. The same all-reduce shows whether all ranks have done their part of a
// save under way; if so, advances the save.
RunRequest RankLoop::agreed(RunRequest mine) {
  const RankRequest all = together([&] { return strongest_of_all({mine, checkpoints_.busy()}, world_); });
  if (checkpoints_.under_way() && !all.busy) checkpoints_.advance();
  return all.request;
}

// Saves and evaluates if they are due. Both may take minutes, so it returns true if a stop was requested meanwhile.
bool RankLoop::stops_after_work_between_steps(RunRequest request) {
  const int64_t step = trainer_.num_steps();
  const bool saves = request == RunRequest::Save || is_multiple(step, train_.save_every);
  const bool evaluates = is_multiple(step, train_.eval_every);
  if (saves) save();
  if (evaluates) evaluate();
  if (!saves && !evaluates) return false;
  return agreed(shared_.controls.stop_requested() ? RunRequest::Stop : RunRequest::GoOn) == RunRequest::Stop;
}

void RankLoop::report_graphs() {
  const std::string why = trainer_.graph_failure();
  if (!why.empty() && !reported_graphs_) notify([&] { shared_.observer.on_slow_path("no CUDA graphs: " + why); });
  reported_graphs_ = !why.empty();
}

void RankLoop::report_choices() {
  for (const std::string& choice : trainer_.take_choices()) notify([&] { shared_.observer.on_choice(choice); });
}

// Called after the first step, so that the first step does not wait for it.
void RankLoop::measure_peak() {
  const at::Tensor& weights = trainer_.model().params().flat_data();
  peak_ = measured_peak(weights.scalar_type(), weights.device(), world_);
  notify([&] { shared_.observer.on_peak(peak_); });
}

void RankLoop::predict() {
  has_predicted_ = true;
  const auto go_on_without = [this](const std::exception& error) {
    shared_.observer.on_choice(cat("no prediction: ", error.what()));
  };
  plan::Cluster rates;
  try {
    rates = measured_rates(start_.spec, shared_.controls.host_of_rank, world_);
    forget_peak(start_.spec);
  } catch (const RunError& error) {  // thrown on all ranks
    forget_peak(start_.spec);
    return notify([&] { go_on_without(error); });
  }
  notify([&] {
    PredictedRun predicted;
    try {
      predicted = predicted_with(rates, start_.spec);
    } catch (const std::exception& error) {  // a fault of the prediction, not of the training
      return go_on_without(error);
    }
    shared_.observer.on_prediction(predicted.prediction);
    if (!predicted.ways.empty()) shared_.observer.on_comparison(predicted.ways);
  });
}

// Counts lost workers too: what is not measured after the first step is not measured later, since a measurement needs
// new groups, which a roster no longer makes then.
bool RankLoop::worth_measuring_peak() const {
  const double tokens = static_cast<double>(int64_t{train_.batch} * start_.spec.model.context) /
                        static_cast<double>(num_ranks(start_.spec.mesh));
  return spec::model_flops_per_token(start_.spec) * tokens >= kFewestFlopsWorthMeasuring;
}

bool RankLoop::worth_predicting() const {
  return worth_measuring_peak() || train_.steps - trainer_.num_steps() >= kManySmallSteps;
}

// Returns true at the last step and every train.eval_every steps. If a save is due at the same step, it comes first,
// since an evaluation may take minutes.
bool RankLoop::is_evaluated(int64_t step) const { return step == train_.steps || is_multiple(step, train_.eval_every); }

// Returns true if the observer knows the evaluation of this step: a process that ended after its save may have finished
// its evaluation too.
bool RankLoop::evaluation_is_known() {
  bool known = false;
  notify([&] { known = shared_.observer.knows_evaluation(trainer_.num_steps()); });
  return comm::agree_any(world_, "known evaluation", known);
}

// Only rank 0's evaluation has the loss per byte.
void RankLoop::evaluate() {
  doing(cat("evaluation after step ", trainer_.num_steps()));
  together([&] {
    compare_replicas();
    evaluation_ = {trainer_.num_steps(), trainer_.evaluate()};
  });
  if (std::isnan(evaluation_.loss)) return;
  checkpoints_.add_evaluation(evaluation_.step, evaluation_.loss);
  notify([&] {
    evaluation_.loss_per_byte = evaluation_.loss / shared_.evaluated.bytes_per_token();
    shared_.observer.on_evaluation(evaluation_);
  });
}

// Reports the mean loss of all replicas. They have made equally many steps, though at different times.
void RankLoop::compare_replicas() {
  if (own_losses_.empty()) return;
  const auto count = static_cast<int64_t>(own_losses_.size());
  const double own = std::accumulate(own_losses_.begin(), own_losses_.end(), 0.0);
  const double sum = comm::agree(world_, "loss of replicas", own, ReduceOp::Sum);
  own_losses_.clear();
  const double mean = sum / static_cast<double>(count * world_.size());
  notify([&] { shared_.observer.on_replicas(trainer_.num_steps(), mean, count); });
}

void RankLoop::save() {
  const int64_t step = trainer_.num_steps();
  if (comm::RankActivity* activity = world_.activity()) activity->begin_storage(cat("save of step ", step));
  trainer_.owes_evaluation = evaluation_.step != step && is_evaluated(step);
  together([&] { checkpoints_.save(); });
  save_is_due_ = false;
}

}  // namespace braid::train
