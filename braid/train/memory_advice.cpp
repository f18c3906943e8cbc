// The changes of a run are those of the refusal before the start (memory_limit.h), for what ranks really needed.
#include "braid/train/memory_advice.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/host_facts.h"
#include "braid/base/memory_error.h"
#include "braid/base/text.h"
#include "braid/mesh/device_mesh.h"
#include "braid/param/memory_account.h"
#include "braid/plan/fitting_changes.h"
#include "braid/plan/nominal_cluster.h"

namespace braid::train {
namespace {

std::string size_text(int64_t bytes) { return human_bytes(static_cast<double>(bytes)); }

// Returns the bytes that a rank may be predicted to hold. If it needed more than was predicted, later predictions
// count as too low by the same bytes.
int64_t most_predicted(const MemoryShortage& shortage, int64_t predicted) {
  const int64_t space = shortage.limit_bytes > 0 ? shortage.limit_bytes : shortage.held_bytes;
  const int64_t too_low = std::max<int64_t>(0, shortage.held_bytes + shortage.asked_bytes - predicted);
  return std::min(space - too_low, predicted - 1);
}

// Returns lines to follow the error's own. Empty if the run cannot be predicted.
std::string advice(const RunSpec& spec, const spec::HostLimits& limits, const MemoryShortage& shortage) {
  const std::optional<plan::Prediction> prediction = plan::nominal_prediction(spec);
  const mesh::DeviceMesh mesh(spec.mesh);
  if (!prediction || shortage.rank < 0 || shortage.rank >= mesh.num_ranks()) return "";
  const plan::RankMemory& own =
      prediction->memory.at(static_cast<size_t>(mesh.coords(shortage.rank)[mesh::Axis::Pipe]));
  std::string lines =
      cat("\npredicted for rank ", shortage.rank, ": ", size_text(own.total()), " (", joined(own.parts_text()), ")");
  const int64_t most = most_predicted(shortage, prediction->most_bytes());
  const auto is_legal = [&](const RunSpec& each) { return spec::problems(each, limits).empty(); };
  const auto changes = plan::fitting_changes(spec, most, plan::kMostChangesNamed, is_legal);
  if (changes.empty()) {
    return cat(lines, "\nno tier, recomputation, ZeRO stage or smaller microbatch needs at most ",
               size_text(std::max<int64_t>(most, 0)));
  }
  lines += "\noverrides with which it fits, the fastest first:";
  for (const plan::FittingChange& change : changes) {
    lines += cat("\n  ", change.overrides, "  # holds ", size_text(change.bytes), ", a step takes ",
                 fixed(change.times, 2), " times as long");
  }
  return lines;
}

// Returns the explanation of a rank's death; shorter if the rank is not one of this host's.
std::string killed_text(const RunSpec& spec, const spec::HostLimits& limits, int rank) {
  const std::string killed = "; the system has killed it because its control group had no memory left";
  const int64_t held = rank < 0 ? 0 : param::held_bytes(rank);
  if (held == 0) return killed;
  return cat(killed, "; it held ", param::account_text(rank), advice(spec, limits, {rank, held, 0, 0}));
}

}  // namespace

void with_memory_advice(const RunSpec& spec, const spec::HostLimits& limits, const std::function<void()>& run) {
  std::optional<param::SharedAccounts> shared;
  if (spec.run.ranks == RanksAs::Processes) shared.emplace();
  const int64_t killed_before = num_killed_for_memory();
  try {
    run();
  } catch (const MemoryError& error) {
    throw RunError(cat(error.what(), advice(spec, limits, error.shortage())));
  } catch (const CommError& error) {
    CommFailure failure = error.failure();
    const bool was_killed = failure.why.find("killed by signal 9 ") != std::string::npos;  // as launch describes an end
    if (!was_killed || num_killed_for_memory() == killed_before) throw;
    failure.why += killed_text(spec, limits, failure.rank);
    failure.calls.clear();  // they say nothing about it
    throw KilledForMemory(std::move(failure));
  }
}

}  // namespace braid::train
