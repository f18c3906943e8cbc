// Preparing a run, starting its ranks, and the loop over steps.
#include "braid/train/run.h"

#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/launch/launcher.h"
#include "braid/nn/model.h"
#include "braid/optim/parameter_groups.h"
#include "braid/param/memory_account.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"
#include "braid/spec/model_flops.h"
#include "braid/spec/model_shape.h"
#include "braid/spec/replicas_apart.h"
#include "braid/train/compute_device.h"
#include "braid/train/continuation.h"
#include "braid/train/evaluated_text.h"
#include "braid/train/initial_weights.h"
#include "braid/train/measured_partition.h"
#include "braid/train/run_data.h"
#include "braid/train/step_schedule.h"
#include "braid/train/thread_count.h"
#include "braid/train/trainer.h"

namespace braid {
namespace {

// Ranks that fail or end are known at once, and a schedule is proved before it runs. A deadline would only end a run of
// which one rank is held up from outside: a paused terminal, a debugger, a slow disk.
constexpr double kNoDeadline = 1e8;
// Steps between two meetings of replicas that run apart: what a wish to stop may take.
constexpr int64_t kStepsApart = 32;

// A group that no parameter is in has a misspelt pattern.
void add_empty_groups(const RunSpec& spec, std::vector<Problem>& found) {
  const ParamOrder names = param_order(model_params(spec.model, 0, 1));
  for (const ParameterGroup& group : spec.optimizer.groups) {
    const auto is_in = [&](const std::string& name) { return matches(group, name); };
    if (std::any_of(names.begin(), names.end(), is_in)) continue;
    found.push_back({"optimizer.groups", toml_text(group.match),
                     cat("must match names of parameters, such as ", names.front(), " or ", names.back()), ""});
  }
}

// Everything that can be known to be wrong before a rank starts.
void refuse_problems(const RunSpec& spec) {
  auto found = problems(spec, host_limits());
  if (found.empty()) add_empty_groups(spec, found);
  if (found.empty()) found = initial_weights_problems(spec);
  if (!found.empty()) throw ConfigError(std::move(found));
  refuse_faulty_schedule(spec);
}

RunStart run_start(const RunSpec& spec, const Corpus& corpus) {
  RunStart start;
  start.spec = spec;
  start.num_params = count_params(spec.model);
  start.padded_vocab = padded_vocab(spec.model, spec.mesh.tensor);
  start.num_documents = corpus.num_documents;
  start.train_tokens = num_tokens(corpus.train);
  start.validation_tokens = num_tokens(corpus.validation);
  start.bigram_entropy = bigram_entropy(corpus, spec.model.vocab);
  start.threads = threads_per_rank(spec, num_cores());
  return start;
}

// What a rank would have happen after the step; the strongest wish of all ranks does.
enum class Wish { GoOn, Save, Stop };

int64_t largest(int64_t mine, Communicator& world) {
  auto value = at::full({1}, mine, at::kLong);
  world.all_reduce(value, ReduceOp::Max).wait_host();
  return value.item<int64_t>();
}

Wish strongest_wish(Wish mine, Communicator& world) {
  return static_cast<Wish>(largest(static_cast<int64_t>(mine), world));
}

bool is_multiple(int64_t step, int every) { return every > 0 && step % every == 0; }

// What the ranks of a run start with: the same object where they are threads, a copy in each process.
struct SharedByRanks {
  const RunStart& start;
  const Corpus& corpus;
  const std::vector<std::string>& choices;  // made before ranks start
  EvaluatedText& evaluated;                 // asked by rank 0 only
  RunObserver& observer;                    // hears rank 0 only
  const std::function<bool()>& stop_requested;
};

// What one rank does with its trainer.
class RankLoop {
 public:
  RankLoop(const SharedByRanks& shared, Trainer& trainer, Communicator& world)
      : shared_(shared), start_(shared.start), train_(start_.spec.train), trainer_(trainer), world_(world) {}

  RunEnd run() {
    if (peak_.per_rank > 0) tell([&] { shared_.observer.on_peak(peak_); });
    if (trainer_.owes_evaluation && !evaluation_is_known()) evaluate();
    bool stops = false;
    while (!stops && trainer_.num_steps() < train_.steps) {
      hear(trainer_.step());
      tell_of_graphs();
      tell_of_choices();
      const Wish wish = agreed_wish();
      stops = wish == Wish::Stop;
      if (stops || trainer_.num_steps() == train_.steps) break;
      if (peak_.per_rank == 0 && worth_measuring_peak()) measure_peak();
      stops = stops_after_work_between_steps(wish);
    }
    return ended(stops && trainer_.num_steps() < train_.steps);
  }

 private:
  RunEnd ended(bool interrupted) {
    RunEnd end;
    end.interrupted = interrupted;
    // Whoever interrupts may not wait: what sends SIGTERM often sends SIGKILL soon after.
    if (saved_step_ != trainer_.num_steps()) save();  // first: whatever fails later, the weights are there
    end.checkpoint = checkpoint_folder(train_.out, saved_step_);
    if (!interrupted) end.evaluation = evaluate();
    end.num_steps = trainer_.num_steps();
    end.timeline = trainer_.timeline();
    return end;
  }

  void tell(const std::function<void()>& call) const {
    if (world_.rank() == 0) call();
  }
  void hear(StepReport report) {
    if (replicas_run_apart(start_.spec)) own_losses_.push_back(report.loss);
    const double tokens_of_rank = report.tokens_per_second / world_.size();
    raise_peak(tokens_of_rank * model_flops_per_token(start_.spec.model));
    report.utilisation = model_flop_utilisation(start_.spec.model, tokens_of_rank, peak_.per_rank);
    tell([&] { shared_.observer.on_step(report); });
  }
  // No step does more than the machine can: a peak that is less was given wrongly, or measured while others worked.
  void raise_peak(double reached_per_rank) {
    if (peak_.per_rank == 0 || reached_per_rank <= peak_.per_rank) return;
    peak_ = {reached_per_rank, PeakSource::Step, 0};
    tell([&] { shared_.observer.on_peak(peak_); });
  }
  // This rank's own. Clocks differ, so time to save is what rank 0 says; it says it once for each save.
  Wish wish() {
    if (shared_.stop_requested()) return Wish::Stop;
    if (world_.rank() != 0 || train_.save_minutes == 0 || wishes_to_save_) return Wish::GoOn;
    wishes_to_save_ = now_seconds() - saved_at_ >= 60 * train_.save_minutes;
    return wishes_to_save_ ? Wish::Save : Wish::GoOn;
  }
  // Replicas that run apart meet now and then, to ask.
  Wish agreed_wish() {
    if (replicas_run_apart(start_.spec) && trainer_.num_steps() % kStepsApart != 0) return Wish::GoOn;
    return strongest_wish(wish(), world_);
  }
  // Saves and evaluates where it is time to. Both may take minutes: tells whether somebody wished to stop meanwhile.
  bool stops_after_work_between_steps(Wish wish) {
    const int64_t step = trainer_.num_steps();
    const bool saves = wish == Wish::Save || is_multiple(step, train_.save_every);
    const bool evaluates = is_multiple(step, train_.eval_every);
    if (saves) save();
    if (evaluates) evaluate();
    if (!saves && !evaluates) return false;
    return strongest_wish(shared_.stop_requested() ? Wish::Stop : Wish::GoOn, world_) == Wish::Stop;
  }

  void tell_of_graphs() {
    const std::string why = trainer_.graph_failure();
    if (!why.empty() && !told_of_graphs_) tell([&] { shared_.observer.on_slow_path("no CUDA graphs: " + why); });
    told_of_graphs_ = !why.empty();
  }

  void tell_of_choices() {
    for (const std::string& choice : trainer_.take_choices()) tell([&] { shared_.observer.on_choice(choice); });
  }

  // The first step is not kept waiting for it.
  void measure_peak() {
    const at::Tensor& weights = trainer_.model().params().flat_data();
    peak_ = measured_peak(weights.scalar_type(), weights.device(), world_);
    tell([&] { shared_.observer.on_peak(peak_); });
  }
  bool worth_measuring_peak() const {
    const double tokens = static_cast<double>(int64_t{train_.batch} * start_.spec.model.context) / world_.size();
    return model_flops_per_token(start_.spec.model) * tokens >= kFewestFlopsWorthMeasuring;
  }

  // At the last step and every so many, after the save where both are due: an evaluation may take minutes.
  bool is_evaluated(int64_t step) const { return step == train_.steps || is_multiple(step, train_.eval_every); }
  // Whoever ended the process after the save may have let the evaluation end too.
  bool evaluation_is_known() {
    bool known = false;
    tell([&] { known = shared_.observer.knows_evaluation(trainer_.num_steps()); });
    return largest(known ? 1 : 0, world_) == 1;
  }

  // Only rank 0's has nats per byte.
  Evaluation evaluate() {
    compare_replicas();
    Evaluation evaluation{trainer_.num_steps(), trainer_.evaluate()};
    evaluated_step_ = evaluation.step;
    if (std::isnan(evaluation.loss)) return evaluation;
    tell([&] {
      evaluation.loss_per_byte = evaluation.loss / shared_.evaluated.bytes_per_token();
      shared_.observer.on_evaluation(evaluation);
    });
    return evaluation;
  }
  // They have made equally many steps, whenever that was.
  void compare_replicas() {
    if (own_losses_.empty()) return;
    const auto count = static_cast<int64_t>(own_losses_.size());
    auto sum = at::full({1}, std::accumulate(own_losses_.begin(), own_losses_.end(), 0.0), at::kDouble);
    world_.all_reduce(sum, ReduceOp::Sum).wait_host();
    own_losses_.clear();
    const double mean = sum.item<double>() / static_cast<double>(count * world_.size());
    tell([&] { shared_.observer.on_replicas(trainer_.num_steps(), mean, count); });
  }
  void save() {
    saved_step_ = trainer_.num_steps();
    trainer_.owes_evaluation = evaluated_step_ != saved_step_ && is_evaluated(saved_step_);
    const std::string directory = checkpoint_folder(train_.out, saved_step_);
    trainer_.save(directory, to_toml(start_.spec));
    saved_at_ = now_seconds();
    wishes_to_save_ = false;
    tell([&] { shared_.observer.on_checkpoint(saved_step_, directory); });
  }

  const SharedByRanks& shared_;
  const RunStart& start_;
  const TrainSpec& train_;
  Trainer& trainer_;
  Communicator& world_;
  int64_t saved_step_ = -1;          // of the last checkpoint
  int64_t evaluated_step_ = -1;      // of the last evaluation
  double saved_at_ = now_seconds();  // or begun
  bool wishes_to_save_ = false;      // and has said so
  bool told_of_graphs_ = false;
  std::vector<double> own_losses_;  // where replicas run apart: of this one's steps since the last evaluation
  PeakFlops peak_{train_.peak_flops, PeakSource::Given, 0};
};

void tell_of_start(const SharedByRanks& shared, int64_t first_step) {
  RunStart start = shared.start;
  start.first_step = first_step;
  shared.observer.on_start(start);
  for (const std::string& choice : shared.choices) shared.observer.on_choice(choice);
  for (const std::string& choice : shared.corpus.choices) shared.observer.on_choice(choice);
}

// The life of a rank. Rank 0 speaks for all.
RunEnd run_rank(const SharedByRanks& shared, Communicator& world) {
  const RunSpec& spec = shared.start.spec;
  account_memory_to(world.rank());
  reset_memory_peak(world.rank());
  enter_device(spec);
  Trainer trainer(spec, shared.corpus, world);
  if (!spec.train.resume.empty()) trainer.load(spec.train.resume);
  if (world.rank() == 0) tell_of_start(shared, trainer.num_steps());
  RunEnd end = RankLoop(shared, trainer, world).run();
  return world.rank() == 0 ? std::move(end) : RunEnd();
}

}  // namespace

HostLimits host_limits() { return {std::min(1024, std::max(16, 4 * num_cores()))}; }  // memory is accounted to 1024

RunEnd run_training(const RunSpec& given, RunObserver& observer, const std::function<bool()>& stop_requested) {
  const Continuation run = continuation_of(given);
  const RunData data(run.spec.data, run.tokenizer_place);
  RunSpec spec = data.resolved(run.spec);
  refuse_problems(spec);
  open_device(spec);
  const Corpus corpus = data.corpus(spec);
  install_memory_accounting();
  const auto measured = resolve_partition(spec, threads_per_rank(spec, num_cores()));
  RunStart start = run_start(spec, corpus);
  start.measured_partition = measured;
  EvaluatedText evaluated(spec, corpus.validation, data.token_bytes());
  const SharedByRanks shared{start, corpus, run.choices, evaluated, observer, stop_requested};
  RunEnd end = values_by_rank(
      launcher(spec.run.ranks), DeviceMesh(spec.mesh).num_ranks(),
      [&](Communicator& world) { return run_rank(shared, world); },
      {.deadline_seconds = kNoDeadline, .threads_per_rank = start.threads, .signals = SignalsTo::Caller})[0];
  end.spec = spec;
  end.bigram_entropy = start.bigram_entropy;
  end.schedule = step_schedule(spec);
  return end;
}

}  // namespace braid
