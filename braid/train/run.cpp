// Preparing a run, starting its ranks, and the loop over steps.
#include "braid/train/run.h"

#include <ATen/Parallel.h>
#include <ATen/ops/full.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/nn/model.h"
#include "braid/param/memory_account.h"
#include "braid/spec/describe.h"
#include "braid/spec/model_flops.h"
#include "braid/spec/model_shape.h"
#include "braid/spec/problems.h"
#include "braid/spec/replicas_apart.h"
#include "braid/train/compute_device.h"
#include "braid/train/continuation.h"
#include "braid/train/measured_partition.h"
#include "braid/train/run_data.h"
#include "braid/train/step_schedule.h"
#include "braid/train/thread_count.h"
#include "braid/train/trainer.h"

namespace braid {
namespace {

// Thread ranks that fail or end are known at once. A deadline would only end a run whose rank 0 is held up from
// outside: a paused terminal, a debugger, a slow disk.
constexpr double kNoDeadline = 1e8;

// Steps between two meetings of replicas that run apart: what a wish to stop may take.
constexpr int64_t kStepsApart = 32;

// Everything that can be known to be wrong before a rank starts.
void refuse_problems(const RunSpec& spec) {
  auto found = problems(spec, host_limits());
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

Wish strongest_wish(Wish mine, Communicator& world) {
  auto wish = at::full({1}, static_cast<int64_t>(mine), at::kLong);
  world.all_reduce(wish, ReduceOp::Max).wait_host();
  return static_cast<Wish>(wish.item<int64_t>());
}

bool is_multiple(int64_t step, int every) { return every > 0 && step % every == 0; }

// What one rank does with its trainer. The observer hears rank 0 only.
class RankLoop {
 public:
  RankLoop(const RunStart& start, Trainer& trainer, Communicator& world, RunObserver& observer,
           const std::function<bool()>& stop_requested)
      : start_(start),
        train_(start.spec.train),
        trainer_(trainer),
        world_(world),
        observer_(observer),
        stop_requested_(stop_requested) {}

  RunEnd run() {
    if (!asks_itself_) trainer_.wish = [this] { return wish(); };
    if (peak_.per_rank > 0) tell([&] { observer_.on_peak(peak_); });
    bool stops = false;
    while (!stops && trainer_.num_steps() < train_.steps) {
      hear(trainer_.advance());
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
    hear(trainer_.settle());
    if (saved_step_ != trainer_.num_steps()) save();  // first: whatever fails later, the weights are there
    end.checkpoint = checkpoint_folder(train_.out, saved_step_);
    // Whoever interrupts may not wait: what sends SIGTERM often sends SIGKILL soon after.
    end.validation_loss = interrupted ? std::numeric_limits<double>::quiet_NaN() : evaluate();
    end.num_steps = trainer_.num_steps();
    end.bigram_entropy = start_.bigram_entropy;
    end.schedule = step_schedule(start_.spec);
    end.timeline = trainer_.timeline();
    return end;
  }

  template <class Call>
  void tell(const Call& call) {
    if (world_.rank() == 0) call();
  }
  void hear(std::optional<StepReport> report) {
    if (!report) return;
    if (replicas_run_apart(start_.spec)) own_losses_.push_back(report->loss);
    report->utilisation =
        model_flop_utilisation(start_.spec.model, report->tokens_per_second, peak_.per_rank * world_.size());
    if (due(report->step, train_.log_every)) tell([&] { observer_.on_step(*report); });
  }
  // This rank's own. Clocks differ, so time to save is what rank 0 says; it says it once for each save.
  Wish wish() {
    if (stop_requested_()) return Wish::Stop;
    if (world_.rank() != 0 || train_.save_minutes == 0 || wishes_to_save_) return Wish::GoOn;
    wishes_to_save_ = now_seconds() - saved_at_ >= 60 * train_.save_minutes;
    return wishes_to_save_ ? Wish::Save : Wish::GoOn;
  }
  // Replicas that run apart meet now and then, to ask.
  Wish agreed_wish() {
    if (!asks_itself_) return trainer_.agreed_wish();
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
    return strongest_wish(stop_requested_() ? Wish::Stop : Wish::GoOn, world_) == Wish::Stop;
  }
  bool due(int64_t step, int every) const { return step % every == 0 || step == train_.steps; }

  void tell_of_graphs() {
    const std::string why = trainer_.graph_failure();
    if (!why.empty() && !told_of_graphs_) tell([&] { observer_.on_slow_path("no CUDA graphs: " + why); });
    told_of_graphs_ = !why.empty();
  }

  void tell_of_choices() {
    for (const std::string& choice : trainer_.take_choices()) tell([&] { observer_.on_choice(choice); });
  }

  // The first step is not kept waiting for it.
  void measure_peak() {
    const at::Tensor& weights = trainer_.model().params().flat_data();
    peak_ = measured_peak(weights.scalar_type(), weights.device(), world_);
    tell([&] { observer_.on_peak(peak_); });
  }
  bool worth_measuring_peak() const {
    const double tokens = static_cast<double>(int64_t{train_.batch} * start_.spec.model.context) / world_.size();
    return model_flops_per_token(start_.spec.model) * tokens >= kFewestFlopsWorthMeasuring;
  }

  double evaluate() {
    hear(trainer_.settle());
    compare_replicas();
    const double loss = trainer_.evaluate();
    if (!std::isnan(loss)) tell([&] { observer_.on_evaluation(trainer_.num_steps(), loss); });
    return loss;
  }
  // They have made equally many steps, whenever that was.
  void compare_replicas() {
    if (own_losses_.empty()) return;
    const auto count = static_cast<int64_t>(own_losses_.size());
    auto sum = at::full({1}, std::accumulate(own_losses_.begin(), own_losses_.end(), 0.0), at::kDouble);
    world_.all_reduce(sum, ReduceOp::Sum).wait_host();
    own_losses_.clear();
    const double mean = sum.item<double>() / static_cast<double>(count * world_.size());
    tell([&] { observer_.on_replicas(trainer_.num_steps(), mean, count); });
  }
  void save() {
    hear(trainer_.settle());
    saved_step_ = trainer_.num_steps();
    const std::string directory = checkpoint_folder(train_.out, saved_step_);
    trainer_.save(directory, to_toml(start_.spec));
    saved_at_ = now_seconds();
    wishes_to_save_ = false;
    tell([&] { observer_.on_checkpoint(saved_step_, directory); });
  }

  const RunStart& start_;
  const TrainSpec& train_;
  Trainer& trainer_;
  Communicator& world_;
  RunObserver& observer_;
  const std::function<bool()>& stop_requested_;
  const bool asks_itself_ = start_.spec.pipeline.validation == "before";
  int64_t saved_step_ = -1;          // of the last checkpoint
  double saved_at_ = now_seconds();  // or begun
  bool wishes_to_save_ = false;      // and has said so
  bool told_of_graphs_ = false;
  std::vector<double> own_losses_;  // where replicas run apart: of this one's steps since the last evaluation
  PeakFlops peak_{train_.peak_flops, PeakSource::Given, 0};
};

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
  RunEnd end;
  run_ranks(
      DeviceMesh(spec.mesh).num_ranks(),
      [&](Communicator& world) {
        at::get_num_threads();  // the first question fixes the thread's own count (docs/libtorch_probe.md)
        at::set_num_threads(start.threads);
        account_memory_to(world.rank());
        reset_memory_peak(world.rank());
        enter_device(spec);
        Trainer trainer(spec, corpus, world);
        if (!spec.train.resume.empty()) trainer.load(spec.train.resume);
        if (world.rank() == 0) {
          RunStart told = start;
          told.first_step = trainer.num_steps();
          observer.on_start(told);
          for (const auto& choices : {run.choices, corpus.choices}) {
            for (const std::string& choice : choices) observer.on_choice(choice);
          }
        }
        RunEnd mine = RankLoop(start, trainer, world, observer, stop_requested).run();
        if (world.rank() == 0) end = std::move(mine);
      },
      LocalOptions{.deadline_seconds = kNoDeadline});
  return end;
}

}  // namespace braid
