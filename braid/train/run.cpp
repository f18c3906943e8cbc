// Prepares a run and starts its ranks.
#include "braid/train/run.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/memory_error.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/rank_activity.h"
#include "braid/launch/launcher.h"
#include "braid/layout/parameters.h"
#include "braid/model/shape.h"
#include "braid/nn/model.h"
#include "braid/param/memory_account.h"
#include "braid/spec/fields.h"
#include "braid/spec/losable_workers.h"
#include "braid/spec/masking.h"
#include "braid/spec/rank_hosts.h"
#include "braid/spec/trained.h"
#include "braid/train/compute_device.h"
#include "braid/train/initial_weights.h"
#include "braid/train/memory_advice.h"
#include "braid/train/memory_limit.h"
#include "braid/train/rank_loop.h"
#include "braid/train/resumed_state.h"
#include "braid/train/run_data.h"
#include "braid/train/run_rates.h"
#include "braid/train/stage_profile.h"
#include "braid/train/step_schedule.h"

namespace braid::train {
namespace {

// When a rank fails, the other ranks' work since the last checkpoint is discarded, so they get little time to end.
constexpr double kGrace = 1;  // seconds

// Throws all problems that can be found before a rank starts.
void refuse_problems(const RunSpec& spec, const spec::HostLimits& limits) {
  auto found = spec::problems(spec, limits);
  if (found.empty()) found = initial_weights_problems(spec);
  if (!found.empty()) throw ConfigError(std::move(found));
  refuse_faulty_schedule(spec);
}

RunStart run_start(const RunSpec& spec, const data::Corpus& corpus, int num_hosts) {
  RunStart start;
  start.spec = spec;
  start.num_params = layout::count_params(spec.model);
  start.num_trained = layout::count_trained_params(spec.model, spec::trained_graph(spec));
  start.padded_vocab = model::padded_vocab(spec.model, spec.mesh.tensor);
  start.num_documents = corpus.num_documents;
  start.train_tokens = data::num_tokens(corpus.train);
  start.validation_tokens = data::num_tokens(corpus.validation);
  start.bigram_entropy = spec::is_masked(spec.model) ? std::numeric_limits<double>::quiet_NaN()
                                                     : data::bigram_entropy(corpus, spec.model.vocab);
  start.threads = spec::threads_per_rank(spec, num_cores() * num_hosts);
  return start;
}

void tell_of_start(const SharedByRanks& shared, int64_t first_step) {
  RunStart start = shared.start;
  start.first_step = first_step;
  shared.observer.on_start(start);
  for (const std::string& choice : shared.choices) shared.observer.on_choice(choice);
  for (const std::string& choice : shared.corpus.choices) shared.observer.on_choice(choice);
}

constexpr int kMostRollbacks = 3;  // to one checkpoint

// The state from which a rank's trainer begins.
struct Beginning {
  std::string checkpoint;  // to load; empty: the beginning of the run
  std::string why;         // reason of the rollback; empty: there was none
  int64_t next_batch = 0;
  int rollbacks = 0;
};

// Returns the beginning after a spike in `loop`, whose checkpoints are of steps before the spike. The run skips the
// samples since the checkpoint up to those of the spike: also the ones before the spike may have led to it.
Beginning after_spike(const Beginning& from, const RankLoop& loop, const Trainer& trainer) {
  const bool anew = !loop.saved().empty();
  Beginning next{anew ? loop.saved() : from.checkpoint, loop.spike(), trainer.next_batch() + 1,
                 anew ? 1 : from.rollbacks + 1};
  const std::string place = next.checkpoint.empty() ? "the beginning" : next.checkpoint;
  if (next.rollbacks > kMostRollbacks) {
    throw RunError(cat(loop.spike(), "; the run has gone back to ", place, " ", kMostRollbacks, " times"));
  }
  next.why = cat(loop.spike(), "; back to ", place, " and on from batch ", next.next_batch + 1, " of the data");
  return next;
}

void tell_of_beginning(const SharedByRanks& shared, const Beginning& from, int64_t num_steps) {
  if (!from.why.empty()) return shared.observer.on_rollback(num_steps, from.why);
  tell_of_start(shared, num_steps);
}

// Runs a rank of the mesh from start to end. Only rank 0 reports the beginning and returns the end.
RunEnd train_in(const SharedByRanks& shared, const RunWorld& world) {
  const RunSpec& spec = shared.start.spec;
  for (Beginning from{spec.train.resume};;) {
    Trainer trainer(spec, shared.corpus, world);
    if (!from.checkpoint.empty()) trainer.load(from.checkpoint);
    if (!from.why.empty()) trainer.go_on_at(from.next_batch);
    RankLoop loop(shared, trainer, world.mesh);
    world.mesh.barrier()
        .wait_host();  // from here on the files that the run began with may be removed; the run's folder may hold them
    if (world.mesh.rank() == 0) tell_of_beginning(shared, from, trainer.num_steps());
    RunEnd end = loop.run();
    if (loop.spike().empty()) return world.mesh.rank() == 0 ? std::move(end) : RunEnd();
    from = after_spike(from, loop, trainer);
  }
}

RunEnd train_on(const SharedByRanks& shared, const RunWorld& world) {
  if (shared.controls.launcher || !spec::workers_are_losable(shared.start.spec)) return train_in(shared, world);
  comm::Roster roster(world.mesh);
  comm::RosterGroup members(roster, world.mesh);
  return train_in(shared, {members, world.with_servers, &roster});
}

RunEnd run_rank(const SharedByRanks& shared, Communicator& world) {
  const RunSpec& spec = shared.start.spec;
  param::account_memory_to(world.rank());
  param::limit_memory(world.rank(), limit_bytes(spec.memory));
  param::reset_memory_peak(world.rank());
  enter_device(spec);
  if (comm::RankActivity* activity = world.activity()) activity->begin_storage("start");
  if (shared.controls.launcher) require_same_inputs(spec, shared.corpus.origin, world);
  const auto request = [&controls = shared.controls] { return request_of(controls); };
  try {
    return on_mesh(spec, world, [&](const RunWorld& roles) { return train_on(shared, roles); },
                   {shared.controls.on_begin, request});
  } catch (const std::bad_alloc&) {  // memory of no tensor; those of the rank are gone by now
    throw MemoryError(cat("there is not enough memory; rank ", world.rank(), " has held ",
                          param::peak_text(world.rank()), " at most"),
                      {world.rank(), param::memory_use(world.rank()).peak_total_bytes, 0, 0});
  }
}

}  // namespace

// Memory is accounted for at most 1024 ranks.
spec::HostLimits host_limits(int num_hosts) {
  return {std::min(std::max(1, 1024 / num_hosts), std::max(16, 4 * num_cores())), num_hosts};
}

RunEnd run_training(const RunSpec& given, RunObserver& observer, const RunControls& controls) {
  RunSpec begun = given;
  begun.train.init = chosen_initial_weights(given.train);
  ckpt::CheckpointReading begun_with(given.train.resume.empty() ? begun.train.init : given.train.resume);
  const ResumedState run = resumed_state_of(begun);
  if (auto found = initial_tokenizer_problems(run.spec); !found.empty()) throw ConfigError(std::move(found));
  const RunData data(run.spec.data, run.tokenizer_place);
  RunSpec spec = data.resolved(run.spec);
  refuse_problems(spec, controls.limits);
  const RunSpec asked = std::exchange(spec, within_memory_limit(spec, controls.limits));
  std::vector<std::string> choices = run.choices;
  for (std::string& told : told_of_memory(asked, spec)) choices.push_back(std::move(told));
  controls.admit(spec);
  open_device(spec);
  const data::Corpus corpus = data.corpus(spec);
  param::install_memory_accounting();
  const auto measured = resolve_partition(spec, spec::threads_per_rank(spec, num_cores()));
  RunStart start = run_start(spec, corpus, num_hosts(controls.host_of_rank));
  start.measured_partition = measured;
  EvaluatedText evaluated(spec, corpus.validation, data.token_bytes());
  const SharedByRanks shared{start, corpus, choices, evaluated, observer, begun_with, controls};
  const Launcher& starts = controls.launcher ? *controls.launcher : launcher(spec.run);
  const LaunchOptions options{
      .deadline_seconds = kNoDeadline,
      .threads_per_rank = start.threads,
      .grace_seconds = kGrace,
      .progress_seconds = spec.run.progress_seconds,
      .signals = SignalsTo::Caller,
      .sums = spec.train.reduction == Reduction::Fast ? comm::ReductionOrder::Measured : comm::ReductionOrder::Tree,
      .ranks_per_node = spec.mesh.ranks_per_node};
  RunEnd end;
  with_memory_advice(spec, controls.limits, [&] {
    end = values_by_rank(
        starts, static_cast<int>(spec::num_world_ranks(spec)),
        [&](Communicator& world) { return run_rank(shared, world); }, options)[0];
  });
  end.spec = spec;
  end.bigram_entropy = start.bigram_entropy;
  return end;
}

}  // namespace braid::train
