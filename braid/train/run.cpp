// Preparing a run and starting its ranks.
#include "braid/train/run.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/base/host.h"
#include "braid/base/text.h"
#include "braid/ckpt/reading.h"
#include "braid/launch/launcher.h"
#include "braid/nn/model.h"
#include "braid/optim/parameter_groups.h"
#include "braid/param/memory_account.h"
#include "braid/spec/fields.h"
#include "braid/spec/model_shape.h"
#include "braid/train/compute_device.h"
#include "braid/train/continuation.h"
#include "braid/train/initial_weights.h"
#include "braid/train/measured_partition.h"
#include "braid/train/rank_loop.h"
#include "braid/train/run_data.h"
#include "braid/train/step_schedule.h"
#include "braid/train/thread_count.h"

namespace braid {
namespace {

// Ranks that fail or end are known at once, and a schedule is proved before it runs. A deadline would only end a run of
// which one rank is held up from outside: a paused terminal, a debugger, a slow disk.
constexpr double kNoDeadline = 1e8;

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
  RankLoop loop(shared, trainer, world);
  world.barrier().wait_host();  // from here on what the run began with may go: it may be in the folder that is written
  if (world.rank() == 0) shared.begun_with.end();
  if (world.rank() == 0) tell_of_start(shared, trainer.num_steps());
  RunEnd end = loop.run();
  return world.rank() == 0 ? std::move(end) : RunEnd();
}

}  // namespace

HostLimits host_limits() { return {std::min(1024, std::max(16, 4 * num_cores()))}; }  // memory is accounted to 1024

RunEnd run_training(const RunSpec& given, RunObserver& observer, const std::function<bool()>& stop_requested) {
  RunSpec begun = given;
  begun.train.init = chosen_initial_weights(given.train);
  CheckpointReading begun_with(given.train.resume.empty() ? begun.train.init : given.train.resume);
  const Continuation run = continuation_of(begun);
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
  const SharedByRanks shared{start, corpus, run.choices, evaluated, observer, begun_with, stop_requested};
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
