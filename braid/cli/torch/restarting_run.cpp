// Makes one attempt after another. Node 0 decides from which checkpoint each of them starts.
#include "braid/cli/torch/restarting_run.h"

#include <algorithm>
#include <iostream>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/memory_error.h"
#include "braid/base/output_file.h"
#include "braid/base/text.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/cli/torch/job_agreements.h"
#include "braid/cli/torch/room_for_run.h"
#include "braid/cli/torch/run_entries.h"
#include "braid/cli/torch/stop_signals.h"
#include "braid/spec/fields.h"
#include "braid/train/initial_weights.h"

namespace braid::cli {
namespace {

constexpr size_t kMostOfCall = 300;  // bytes

RunRoom room_of(const RunParts& parts) {
  RunRoom room;
  if (parts.folder) {
    room.folder = parts.folder->path();
    room.removed = parts.folder->removed_by_begin();
  }
  if (!parts.job) return room;
  room.host_of_rank = parts.job->host_of_rank();
  const std::vector<int>& nodes = parts.job->node_of_rank();
  const auto first = std::ranges::find(nodes, parts.job->rounds().node());
  if (first != nodes.end()) room.host = room.host_of_rank.at(static_cast<size_t>(first - nodes.begin()));
  return room;
}

// Runs the training once. Only the first attempt checks for enough memory and disk: a failed attempt may still hold
// them.
train::RunEnd attempt(const RunSpec& spec, const RunParts& parts, int restarts) {
  train::RunControls controls;
  controls.stop_requested = [] { return StopSignals::received() != 0; };
  controls.takes_save_request = [] { return StopSignals::takes_save_request(); };
  controls.on_begin = [] { StopSignals::keep_work(); };
  if (restarts == 0) controls.admit = [&](const RunSpec& resolved) { refuse_without_room(resolved, room_of(parts)); };
  if (!parts.job) return train::run_training(spec, parts.printer, controls);
  const ReadyLauncher launcher(*parts.job);
  controls.launcher = &launcher;
  controls.limits = train::host_limits(parts.job->num_nodes());
  controls.host_of_rank = parts.job->host_of_rank();
  try {
    return train::run_training(spec, parts.printer, controls);
  } catch (const std::exception& error) {
    launcher.refuse(error);  // the other nodes are waiting for this node's ranks
    throw;
  }
}

// Returns the checkpoint to restart from; empty: the beginning. This is the newest intact checkpoint of the folder. If
// there is none, or if the run had not begun to write there, it is the checkpoint that the run resumed from.
std::string next_checkpoint(const RunSpec& first, const RunParts& parts) {
  if (!parts.folder->has_begun()) return first.train.resume;
  RunSpec own = first;
  const ckpt::CheckpointChoice choice = ckpt::chosen_checkpoint(own.train.out);
  for (const std::string& fault : choice.passed_over) parts.printer.note("passed over " + fault);
  if (!choice.directory.empty()) own.train.resume = choice.directory;
  own.train.overwrite = true;
  parts.folder->admit(own);
  return own.train.resume;
}

// The attempts of a run that have failed.
struct FailedAttempts {
  int restarts = 0;
  int64_t killed_after = -1;  // steps of the run at the newest kill for memory
};

// Returns true if the system has killed a rank of some node for memory.
bool any_killed_for_memory(const CommError& error, Job* job) {
  const bool here = dynamic_cast<const KilledForMemory*>(&error) != nullptr;
  if (!job) return here;
  return std::ranges::any_of(job->rounds().exchange(MemoryKill{here}), &MemoryKill::on_this_node);
}

// Returns true if a rank was killed for memory and the run has made no step since it started, or none since the kill
// before: the same step needs the same memory again. Node 0 decides; others return false.
bool would_be_killed_again(const CommError& error, const RunParts& parts, FailedAttempts& failed) {
  if (!any_killed_for_memory(error, parts.job) || !parts.folder) return false;
  const report::RunRecord record = parts.folder->has_begun() ? record_of(parts.folder->path()) : report::RunRecord();
  const int64_t steps = record.num_steps(), first = record.first_steps.empty() ? 0 : record.first_steps.back();
  const bool again = steps <= std::max(first, std::exchange(failed.killed_after, steps));
  if (again) parts.printer.note(cat("no restart: it would need the same memory again after step ", steps));
  return again;
}

// Returns the checkpoint of the next attempt, empty for the beginning; nothing if there is no next attempt. Throws
// CommError if a node fails meanwhile.
std::optional<std::string> agreed_attempt(const CommError& error, const RunSpec& spec, const RunParts& parts,
                                          FailedAttempts& failed) {
  const bool may = spec.run.ranks == RanksAs::Processes && failed.restarts < spec.run.max_restarts;
  if (parts.job && parts.job->rounds().lost_node() >= 0) return std::nullopt;
  const bool restarts = may && signal_of_all(parts.job) == 0 && !would_be_killed_again(error, parts, failed);
  NextAttempt next;
  if (restarts && (!parts.job || parts.job->leads())) next = {true, next_checkpoint(spec, parts)};
  if (parts.job) next = parts.job->rounds().exchange(next)[0];
  return next.again ? std::optional(next.checkpoint) : std::nullopt;
}

// Writes the failure into the run's folder, with all calls that it has of the rank that noticed it.
void write_failure(const CommError& error, const RunParts& parts) {
  if (!parts.folder || !parts.folder->has_begun()) return;
  std::string text = cat(error.what(), "\n");
  if (!error.failure().calls.empty()) text += "\nthe last calls of the rank that noticed it, oldest first:\n";
  for (const std::string& call : error.failure().calls) text += printable(call, kMostOfCall) + "\n";
  try {
    write_file(cat(parts.folder->path(), "/", kFailureName), text);
  } catch (const IoError& fault) {  // the failure itself is the error to report
    parts.printer.note(fault.what());
  }
}

// Returns nothing also if a node fails meanwhile. The run then ends with its first error.
std::optional<std::string> next_attempt(const CommError& error, const RunSpec& spec, const RunParts& parts,
                                        FailedAttempts& failed) {
  try {
    return agreed_attempt(error, spec, parts, failed);
  } catch (const CommError& loss) {
    std::cerr << "braid: " << loss.what() << std::endl;
    return std::nullopt;
  }
}

}  // namespace

train::RunEnd restarting_run(const RunSpec& spec, const RunParts& parts) {
  RunSpec now = spec;
  FailedAttempts failed;
  for (int& restarts = failed.restarts;; ++restarts) {
    try {
      return attempt(now, parts, restarts);
    } catch (const CommError& error) {
      write_failure(error, parts);
      const auto next = next_attempt(error, spec, parts, failed);
      if (!next) {
        if (restarts > 0 && restarts == spec.run.max_restarts) {
          parts.printer.note(cat("all restarts that run.max_restarts allows are used up: ", restarts));
        }
        throw;
      }
      std::cerr << "braid: " << error.what() << std::endl;
      now.train.resume = *next;
    }
    parts.printer.note(cat("restart ", restarts + 1, " of ", spec.run.max_restarts, ", from ",
                           now.train.resume.empty() ? "the beginning" : now.train.resume));
  }
}

int signal_of_all(Job* job) {
  if (!job) return StopSignals::received();
  int signal = 0;
  for (const SignalOfNode& of : job->rounds().exchange(SignalOfNode{StopSignals::received()})) {
    if (signal == 0) signal = of.signal;
  }
  return signal;
}

void broadcast_refusal(Job& job, const std::string& why) {
  job.rounds().exchange(AgreedStart{.refused = true, .why = why});
}

RunSpec agreed_spec(RunSpec spec, Job& job) {
  AgreedStart start;
  if (job.leads())
    start = {false, "", spec.train.resume, train::chosen_initial_weights(spec.train), run_mark(spec.train.out)};
  start = job.rounds().exchange(start)[0];
  if (start.refused) throw ConfigError({{"", "", cat("node 0 on ", job.nodes()[0].host, ": ", start.why), ""}});
  spec.train.resume = start.resume;
  spec.train.init = start.init;
  const bool sees = run_mark(spec.train.out) == start.mark;
  const auto all = job.rounds().exchange(FolderSight{sees, sees ? why_not_writable(spec.train.out) : ""});
  std::vector<std::string> blind, barred;
  for (size_t node = 0; node < all.size(); ++node) {
    const std::string& host = job.nodes()[node].host;
    if (!all[node].seen) blind.push_back(host);
    if (!all[node].barred.empty()) barred.push_back(cat(host, " cannot: ", all[node].barred));
  }
  if (blind.empty() && barred.empty()) return spec;
  if (blind.empty()) {
    throw ConfigError({{"train.out", spec::toml_text(spec.train.out),
                        cat("must be a folder that all hosts can write: ", joined(barred, "; ")), ""}});
  }
  throw ConfigError({{"train.out", spec::toml_text(spec.train.out),
                      cat("must be a folder that all hosts share: ", joined(blind), " ",
                          blind.size() == 1 ? "does" : "do", " not see the one of ", job.rounds().nodes()[0].host),
                      ""}});
}

}  // namespace braid::cli
