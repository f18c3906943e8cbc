// The three runs.
#include "braid/verify/verify_layout.h"

#include <ATen/Parallel.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <exception>
#include <mutex>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/train/run_world.h"
#include "braid/verify/comparison.h"
#include "braid/verify/perturbation.h"
#include "braid/verify/recorder.h"
#include "braid/verify/serial_replay.h"
#include "braid/verify/serial_run.h"
#include "braid/verify/update_slack.h"

namespace braid::verify {
namespace {

void use_one_thread() {
  at::get_num_threads();
  at::set_num_threads(1);
}

// Returns the run without the check of the gradient norm, which would end a run before all of it is compared, and with
// at least as many steps as are compared. The last step of replicas that update apart ends with their average.
RunSpec compared_run(RunSpec run, int steps) {
  run.train.check = NormCheck::Off;
  run.train.steps = replayed(run) == Replayed::Replicas ? steps : std::max(run.train.steps, steps);
  return spec::with_parts(std::move(run));
}

// Throws RunError if a number of the serial runs is not finite: no difference would then be beyond its bound.
void check_finite(const Differences& rounded, const Subjects& subjects, const RunSpec& run) {
  for (const auto& [place, difference] : rounded.all()) {
    if (std::isfinite(difference.largest.difference) && std::isfinite(difference.scale)) continue;
    const bool is_scaled = run.train.dtype == DType::Float16;
    throw RunError(cat("nothing can be compared: in step ", place.step, ", ", word(place.phase), ", ",
                       subjects[place.subject].tensor, " of the run on one rank is not finite",
                       is_scaled ? "; a smaller train.loss_scale may help" : ""));
  }
}

// Returns the order of sums over microbatches that the run does not have. A tree needs a power of two.
Reduction other_reduction(const RunSpec& run) {
  const auto microbatches = static_cast<unsigned>(run.train.batch / run.train.microbatch);
  const bool takes_tree = run.train.reduction == Reduction::Fast && std::has_single_bit(microbatches);
  return takes_tree ? Reduction::Reproducible : Reduction::Fast;
}

// The runs of one verification.
class Runs {
 public:
  Runs(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options)
      : run_(compared_run(run, options.steps)),
        serial_(serial_of(run_)),
        corpus_(corpus),
        options_(options),
        subjects_(run_),
        serial_places_(serial_, subjects_, {}),
        recordings_(replayed(run) == Replayed::Replicas ? static_cast<size_t>(run.mesh.data) : 1) {}

  const Subjects& subjects() const { return subjects_; }

  void record() {
    std::deque<Recorder> recorders;
    std::vector<nn::ValueObserver*> observers;
    for (Recording& recording : recordings_) {
      observers.push_back(&recorders.emplace_back(serial_places_, subjects_, recording));
    }
    run_serially(run_, observers, recorders);
  }

  // The order of sums over microbatches is the other one too.
  Differences rounded() {
    RunSpec run = run_;
    run.train.reduction = other_reduction(run);
    if (run_.train.reduction == Reduction::Fast) run.train.tensor_parts = 1;  // the vocabulary keeps its padding
    std::deque<Comparison> comparisons;
    std::deque<Perturbation> perturbations;
    std::vector<nn::ValueObserver*> observers;
    for (const Recording& recording : recordings_) {
      comparisons.emplace_back(serial_places_, subjects_, recording,
                               Comparison::Options{.gradients = serial_gradients()});
      observers.push_back(&perturbations.emplace_back(run.train.dtype, subjects_, comparisons.back()));
    }
    run_serially(run, observers, comparisons);
    Differences differences;
    for (const Comparison& comparison : comparisons) differences.add(comparison.differences());
    return differences;
  }

  // In a replay a number also depends on the gradients of other replicas and of updates before the last.
  void explain_updates(const Rounding& rounding) {
    const bool follows = run_.optimizer.kind != OptimizerKind::Muon && replayed(run_) == Replayed::Nothing;
    if (follows) set_update_slack(recordings_.front(), rounding, run_.optimizer);
  }

  // Compares until the run has ended or failed; `failure` then holds the error.
  Differences layout(std::exception_ptr& failure) {
    Differences all;
    std::mutex lock;
    try {
      run_ranks(static_cast<int>(spec::num_world_ranks(run_)), [&](Communicator& world) {
        use_one_thread();
        const auto run = [&](const RankInputs& rank) { run_rank(rank, all, lock); };
        options_.around ? options_.around(inputs(run_, world), run) : run(inputs(run_, world));
      });
    } catch (...) {
      failure = std::current_exception();
    }
    return all;
  }

 private:
  // Adds a rank's differences to those of all ranks, even if the rank fails.
  struct Gathered {
    const Comparison& comparison;
    Differences& all;
    std::mutex& lock;
    ~Gathered() {
      const std::scoped_lock hold(lock);
      all.add(comparison.differences());
    }
  };

  ParamGradients serial_gradients() const {
    return replayed(run_) == Replayed::Stages ? ParamGradients::Parts : ParamGradients::Final;
  }
  ParamGradients gradients() const {
    const bool of_worker = run_.sync.replication == ReplicationKind::ParameterServer;
    return of_worker ? ParamGradients::Parts : serial_gradients();
  }

  // Makes the steps of the serial run, or of its replicas. Watchers are called before and after them.
  template <class Watchers>
  void run_serially(const RunSpec& run, const std::vector<nn::ValueObserver*>& observers, Watchers& watchers) const {
    run_ranks(1, [&](Communicator& world) {
      use_one_thread();
      if (replayed(run) != Replayed::Nothing) return replay({run, corpus_, world, observers}, watchers);
      make_steps(inputs(serial_of(run), world), train::RunWorld(world), *observers.front(), watchers.front());
    });
  }

  template <class Watchers>
  void replay(SerialReplay replay, Watchers& watchers) const {
    for (size_t r = 0; r < watchers.size(); ++r) watchers[r].begin(replay.params(r));
    for (int step = 0; step < options_.steps; ++step) {
      const train::StepReport report = replay.step();
      for (size_t r = 0; r < watchers.size(); ++r) watchers[r].end_step(replay.params(r), report);
    }
  }

  // Makes the steps on a rank whose values `observer` sees. `watcher` is called before and after them.
  template <class Watcher>
  void make_steps(const RankInputs& rank, const train::RunWorld& world, nn::ValueObserver& observer,
                  Watcher& watcher) const {
    nn::ModelMaker maker = rank.maker;
    maker.observer = rank.observer ? &rank.observer(observer) : &observer;
    train::Trainer trainer(rank.spec, *rank.corpus, world, maker);
    if (rank.begun) rank.begun(trainer);
    watcher.begin(trainer.model().params());
    for (int step = 0; step < options_.steps; ++step) {
      const train::StepReport report = trainer.step();
      watcher.end_step(trainer.model().params(), report);
    }
  }

  RankInputs inputs(const RunSpec& spec, Communicator& world) const {
    return {spec, &corpus_, &world, nn::model_maker(spec.model), nullptr, nullptr};
  }

  void run_rank(const RankInputs& rank, Differences& all, std::mutex& lock) const {
    train::on_mesh(rank.spec, *rank.world, [&](const train::RunWorld& world) {
      const mesh::DeviceMesh mesh(run_.mesh);
      const int number = world.mesh.rank();
      const mesh::Coords at = mesh.coords(number);
      const ValuePlaces places(run_, subjects_,
                               {{at[mesh::Axis::Tensor], run_.mesh.tensor, mesh::Axis::Tensor},
                                {at[mesh::Axis::Context], run_.mesh.context}});
      const bool is_worker = run_.sync.replication == ReplicationKind::ParameterServer;
      const size_t replica = recordings_.size() == 1 ? 0 : static_cast<size_t>(at[mesh::Axis::Data]);
      Comparison comparison(places, subjects_, recordings_[replica],
                            {number, is_worker ? 1.0 * run_.mesh.data : 1, gradients()});
      const Gathered gathered{comparison, all, lock};
      make_steps(rank, world, comparison, comparison);
    });
  }

  const RunSpec run_, serial_;
  const data::Corpus& corpus_;
  const VerifyOptions& options_;
  const Subjects subjects_;
  const ValuePlaces serial_places_;
  std::vector<Recording> recordings_;  // of each replica, or one
};

}  // namespace

Verdict verify_layout(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options) {
  const double begin = now_seconds();
  Runs runs(run, corpus, options);
  runs.record();
  const Differences rounded = runs.rounded();
  check_finite(rounded, runs.subjects(), run);
  const Rounding rounding{rounded, runs.subjects(), run.train.dtype};
  runs.explain_updates(rounding);
  std::exception_ptr failure;
  const Differences layout = runs.layout(failure);
  Verdict verdict = judged(layout, rounding);
  const bool has_rank = verdict.first_divergence && !verdict.first_divergence->ranks.empty();
  if (failure && !has_rank) std::rethrow_exception(failure);
  verdict.steps = options.steps;
  verdict.seconds = now_seconds() - begin;
  return verdict;
}

}  // namespace braid::verify
