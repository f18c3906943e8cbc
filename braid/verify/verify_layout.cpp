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

void use_one_thread() {
  at::get_num_threads();
  at::set_num_threads(1);
}

// Returns the run without the check of the gradient norm, which would end a run before all of it is compared.
RunSpec unchecked(RunSpec run) {
  run.train.check = NormCheck::Off;
  return spec::with_parts(std::move(run));
}

// The runs of one verification.
class Runs {
 public:
  Runs(const RunSpec& run, const data::Corpus& corpus, const VerifyOptions& options)
      : run_(unchecked(run)),
        serial_(serial_of(run_)),
        corpus_(corpus),
        options_(options),
        subjects_(run_),
        serial_places_(serial_, subjects_, {}) {}

  const Subjects& subjects() const { return subjects_; }

  void record() {
    run_ranks(1, [&](Communicator& world) {
      use_one_thread();
      Recorder recorder(serial_places_, subjects_, recording_);
      make_steps(inputs(serial_, world), train::RunWorld(world), recorder, recorder);
    });
  }

  // The order of sums over microbatches is the other one too.
  Differences rounded() {
    RunSpec spec = serial_;
    const bool fast = spec.train.reduction == Reduction::Fast;
    spec.train.reduction = fast ? Reduction::Reproducible : Reduction::Fast;
    if (fast) spec.train.tensor_parts = 1;  // the vocabulary keeps its padding
    Differences differences;
    run_ranks(1, [&](Communicator& world) {
      use_one_thread();
      Comparison comparison(serial_places_, subjects_, recording_, {});
      Perturbation perturbation(spec.train.dtype, subjects_, comparison);
      make_steps(inputs(spec, world), train::RunWorld(world), perturbation, comparison);
      differences = comparison.differences();
    });
    return differences;
  }

  void explain_updates(const Rounding& rounding) {
    if (run_.optimizer.kind != OptimizerKind::Muon) set_update_slack(recording_, rounding);
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

  // Makes the steps on a rank whose values `observer` sees. `watcher` is called before and after them.
  template <class Watcher>
  void make_steps(const RankInputs& rank, const train::RunWorld& world, nn::ValueObserver& observer,
                  Watcher& watcher) const {
    nn::ModelMaker maker = rank.maker;
    maker.observer = rank.observer ? &rank.observer(observer) : &observer;
    train::Trainer trainer(rank.spec, *rank.corpus, world, maker);
    if (rank.begun) rank.begun(trainer);
    watcher.begin(trainer);
    for (int step = 0; step < options_.steps; ++step) {
      const train::StepReport report = trainer.step();
      watcher.end_step(trainer, report);
    }
  }

  RankInputs inputs(const RunSpec& spec, Communicator& world) const {
    return {spec, &corpus_, &world, nn::model_maker(spec.model), nullptr, nullptr};
  }

  void run_rank(const RankInputs& rank, Differences& all, std::mutex& lock) const {
    train::on_mesh(rank.spec, *rank.world, [&](const train::RunWorld& world) {
      const mesh::DeviceMesh mesh(run_.mesh);
      const int number = world.mesh.rank();
      const ValuePlaces places(run_, subjects_,
                               {mesh.coords(number)[mesh::Axis::Tensor], run_.mesh.tensor, mesh::Axis::Tensor});
      const bool is_worker = run_.sync.replication == ReplicationKind::ParameterServer;
      Comparison comparison(places, subjects_, recording_, {number, is_worker ? 1.0 * run_.mesh.data : 1});
      const Gathered gathered{comparison, all, lock};
      make_steps(rank, world, comparison, comparison);
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
