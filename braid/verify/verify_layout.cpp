// The three runs.
#include "braid/verify/verify_layout.h"

#include <ATen/Parallel.h>

#include <exception>
#include <mutex>

#include "braid/base/clock.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/train/run_world.h"
#include "braid/verify/comparison.h"
#include "braid/verify/perturbation.h"
#include "braid/verify/recorder.h"
#include "braid/verify/serial_run.h"
#include "braid/verify/update_slack.h"

namespace braid::verify {
namespace {

void use_threads(int count) {
  at::get_num_threads();
  at::set_num_threads(count);
}

// The runs of one verification.
class Runs {
 public:
  Runs(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options)
      : run_(run),
        serial_(serial_of(run)),
        corpus_(corpus),
        options_(options),
        subjects_(run),
        serial_places_(serial_, subjects_, {}) {}

  const Subjects& subjects() const { return subjects_; }

  void record() {
    run_ranks(1, [&](Communicator& world) {
      use_threads(1);
      Recorder recorder(serial_places_, subjects_, recording_);
      make_steps(serial_, corpus_, train::RunWorld(world), maker_with(recorder), recorder);
    });
  }

  // The order of sums over microbatches is the other one too, and so is the number of threads.
  Differences rounded() {
    RunSpec spec = serial_;
    const bool fast = spec.train.reduction == Reduction::Fast;
    spec.train.reduction = fast ? Reduction::Reproducible : Reduction::Fast;
    Differences differences;
    run_ranks(1, [&](Communicator& world) {
      use_threads(2);
      Comparison comparison(serial_places_, subjects_, recording_, {});
      Perturbation perturbation(spec.train.dtype, subjects_, comparison);
      make_steps(spec, corpus_, train::RunWorld(world), maker_with(perturbation), comparison);
      differences = comparison.differences();
    });
    return differences;
  }

  void explain_updates(const Differences& rounded) {
    if (run_.optimizer.kind == OptimizerKind::Muon) return;
    set_update_slack(recording_, rounded, subjects_, run_.train.dtype);
  }

  // Compares until the run has ended or failed; `failure` then holds the error.
  Differences layout(std::exception_ptr& failure) {
    Differences all;
    std::mutex lock;
    try {
      run_ranks(static_cast<int>(spec::num_world_ranks(run_)), [&](Communicator& world) {
        use_threads(1);
        const RankInputs inputs{run_, &corpus_, &world, nn::model_maker(run_.model), nullptr, nullptr};
        const auto run = [&](const RankInputs& rank) { run_rank(rank, all, lock); };
        options_.around ? options_.around(inputs, run) : run(inputs);
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

  nn::ModelMaker maker_with(nn::ValueObserver& observer) const {
    nn::ModelMaker maker = nn::model_maker(run_.model);
    maker.observer = &observer;
    return maker;
  }

  template <class Watcher>
  void make_steps(const RunSpec& spec, const data::Corpus& corpus, const train::RunWorld& world,
                  const nn::ModelMaker& maker, Watcher& watcher,
                  const std::function<void(train::Trainer&)>& begun = nullptr) const {
    train::Trainer trainer(spec, corpus, world, maker);
    if (begun) begun(trainer);
    watcher.begin(trainer);
    for (int step = 0; step < options_.steps; ++step) {
      const train::StepReport report = trainer.step();
      watcher.end_step(trainer, report);
    }
  }

  void run_rank(const RankInputs& inputs, Differences& all, std::mutex& lock) const {
    train::on_mesh(inputs.spec, *inputs.world, [&](const train::RunWorld& world) {
      const mesh::DeviceMesh mesh(run_.mesh);
      const int rank = world.mesh.rank();
      const ValuePlaces places(run_, subjects_,
                               {mesh.coords(rank)[mesh::Axis::Tensor], run_.mesh.tensor, mesh::Axis::Tensor});
      const bool is_worker = run_.sync.replication == ReplicationKind::ParameterServer;
      Comparison comparison(places, subjects_, recording_, {rank, is_worker ? 1.0 * run_.mesh.data : 1});
      const Gathered gathered{comparison, all, lock};
      nn::ModelMaker maker = inputs.maker;
      maker.observer = inputs.observer ? &inputs.observer(comparison) : &comparison;
      make_steps(inputs.spec, *inputs.corpus, world, maker, comparison, inputs.begun);
    });
  }

  const RunSpec run_, serial_;
  const data::Corpus& corpus_;
  const VerifyOptions& options_;
  const Subjects subjects_;
  const ValuePlaces serial_places_;
  Recording recording_;
};

}  // namespace

Verdict verify_layout(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options) {
  const double begin = now_seconds();
  Runs runs(run, corpus, options);
  runs.record();
  const Differences rounded = runs.rounded();
  runs.explain_updates(rounded);
  std::exception_ptr failure;
  const Differences layout = runs.layout(failure);
  Verdict verdict = judged(layout, rounded, runs.subjects(), run.train.dtype);
  if (failure && !verdict.first_divergence) std::rethrow_exception(failure);
  verdict.steps = options.steps;
  verdict.seconds = now_seconds() - begin;
  return verdict;
}

}  // namespace braid::verify
