// The keys that describe the layout have the defaults of one rank.
#include "braid/verify/serial_run.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/spec/partition.h"
#include "braid/train/step_schedule.h"

namespace braid::verify {
namespace {

bool is_asynchronous(const RunSpec& run) {
  if (const ScheduleTraits* const traits = spec::traits_of(run.pipeline)) return traits->asynchronous();
  return train::version_plan(run, train::step_schedule(run)).asynchronous();
}

}  // namespace

Replayed replayed(const RunSpec& run) {
  const ReplicationKind kind = run.sync.replication;
  if (kind == ReplicationKind::LocalSgd || kind == ReplicationKind::DiLoCo) return Replayed::Replicas;
  const std::string& schedule = run.pipeline.schedule;
  const bool is_known = schedule == "pipedream" || schedule == "pipedream-2bw";
  return is_known ? Replayed::Stages : Replayed::Nothing;
}

RunSpec serial_of(const RunSpec& run) {
  RunSpec serial = run;
  serial.mesh = {};
  serial.pipeline = {};
  serial.sync = {};
  serial.memory = {};
  serial.run = {};
  return serial;
}

std::vector<Problem> changed_semantics(const RunSpec& run) {
  std::vector<Problem> problems;
  const auto refuse = [&](const char* key, const std::string& value, const std::string& what) {
    problems.push_back({key, value, cat("no run on one rank trains the same: ", what), ""});
  };
  const SyncSpec& sync = run.sync;
  if (is_asynchronous(run) && replayed(run) == Replayed::Nothing) {
    refuse("pipeline.schedule", run.pipeline.schedule, "an asynchronous pipeline uses several versions of the weights");
  }
  if (replayed(run) == Replayed::Replicas && run.train.dtype == DType::Float16) {
    refuse("train.dtype", std::string(word(run.train.dtype)), "replicas agree on steps whose gradients overflow");
  }
  if (spec::replicas_run_apart(run)) {
    refuse("sync.consistency", std::string(word(sync.consistency)), "workers read weights of different age");
  }
  if (sync.replication == ReplicationKind::ParameterServer && (sync.push_every > 1 || sync.pull_every > 1)) {
    refuse(sync.push_every > 1 ? "sync.push_every" : "sync.pull_every", cat(std::max(sync.push_every, sync.pull_every)),
           "workers do not exchange at every step");
  }
  if (sync.replication == ReplicationKind::ParameterServer && run.mesh.data > 1 && run.optimizer.clip_norm > 0) {
    refuse("optimizer.clip_norm", exact(run.optimizer.clip_norm),
           "each worker of a parameter server clips by the norm of its own gradients (0 does not)");
  }
  if (sync.compression != CompressionKind::None) {
    refuse("sync.compression", std::string(word(sync.compression)), "compression changes the gradients");
  }
  if (!run.train.resume.empty()) {
    problems.push_back({"train.resume", run.train.resume, "must not be given: the comparison begins at step 1", ""});
  }
  return problems;
}

}  // namespace braid::verify
