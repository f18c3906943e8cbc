#include "braid/train/memory_limit.h"

#include <cmath>
#include <functional>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/fastest_recompute.h"
#include "braid/plan/fitting_changes.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"

namespace braid::train {
namespace {

[[noreturn]] void refuse(const RunSpec& spec, const plan::Prediction& prediction, int64_t limit,
                         const std::function<bool(const RunSpec&)>& is_legal) {
  std::string rule = cat("must hold what a rank needs: the fullest would hold ",
                         human_bytes(static_cast<double>(prediction.most_bytes())), " (",
                         joined(prediction.fullest().parts_text()), ")");
  const auto changes = plan::fitting_changes(spec, limit, plan::kMostChangesNamed, is_legal);
  for (const plan::FittingChange& change : changes) {
    rule += cat("; with ", change.overrides, " it holds ", human_bytes(static_cast<double>(change.bytes)),
                ", a step takes ", fixed(change.times, 2), " times as long");
  }
  if (changes.empty()) rule += "; no tier, recomputation, ZeRO stage or smaller microbatch makes it fit";
  throw ConfigError({{"memory.limit_gb", spec::value_text(*spec::find_field("memory.limit_gb"), spec), rule, ""}});
}

// A run with its "auto" values replaced.
struct Resolved {
  RunSpec spec;
  plan::Prediction prediction;
};

// Returns the run with the fastest policies of recomputation that fit, if they are to be chosen; nothing if it cannot
// be predicted.
std::optional<Resolved> with_recompute(RunSpec spec, int64_t limit,
                                       const std::function<bool(const RunSpec&)>& is_legal) {
  if (spec.memory.recompute != spec::kAutoRecompute) {
    auto prediction = plan::nominal_prediction(spec);
    return prediction ? std::optional(Resolved{std::move(spec), std::move(*prediction)}) : std::nullopt;
  }
  auto found = plan::fastest_recompute(spec, limit, is_legal);
  if (!found) return std::nullopt;
  found->apply(spec.memory);
  return Resolved{std::move(spec), std::move(found->prediction)};
}

// Returns true if a tier on disk is better: without it the run does not fit, or is slower because of the recomputation
// or the other tiers that it needs then. Small states need less memory than the chunks of their updates.
bool is_better(const Resolved& on_disk, const Resolved& other, int64_t limit) {
  const bool fits = on_disk.prediction.most_bytes() <= limit, fits_here = other.prediction.most_bytes() <= limit;
  if (fits && fits_here) return on_disk.prediction.step_seconds() < other.prediction.step_seconds();
  return !fits_here && on_disk.prediction.most_bytes() < other.prediction.most_bytes();
}

}  // namespace

RunSpec within_memory_limit(const RunSpec& given, const spec::HostLimits& limits) {
  RunSpec keeping = given;
  if (given.memory.recompute == spec::kAutoRecompute) keeping.memory.recompute = "none";
  if (given.memory.limit_gb == 0) return keeping;
  const int64_t limit = limit_bytes(given.memory);
  const auto is_legal = [&](const RunSpec& spec) { return spec::problems(spec, limits).empty(); };
  RunSpec resident = given;
  for (const plan::DiskTier& each : plan::disk_tiers().back()) {
    if (given.memory.*each.tier == Tier::Auto) resident.memory.*each.tier = Tier::Resident;
  }
  auto chosen = with_recompute(resident, limit, is_legal);
  if (!chosen) return keeping;
  for (const std::vector<plan::DiskTier>& set : plan::disk_tiers()) {
    RunSpec moved = resident;
    for (const plan::DiskTier& each : set) {
      if (given.memory.*each.tier == Tier::Auto) moved.memory.*each.tier = Tier::Disk;
    }
    if (moved == resident || !is_legal(moved)) continue;
    auto on_disk = with_recompute(std::move(moved), limit, is_legal);
    if (on_disk && is_better(*on_disk, *chosen, limit)) chosen = std::move(on_disk);
  }
  if (chosen->prediction.most_bytes() > limit && !spec::is_measured(given.pipeline)) {
    chosen->spec.memory.recompute = given.memory.recompute;
    chosen->spec.memory.activation_blocks = given.memory.activation_blocks;
    refuse(chosen->spec, chosen->prediction, limit, is_legal);
  }
  return chosen->spec;
}

std::vector<std::string> told_of_memory(const RunSpec& given, const RunSpec& chosen) {
  std::vector<std::string> told;
  const auto tell = [&](const char* key) {
    const spec::Field& field = *spec::find_field(key);
    const std::string value = spec::value_text(field, chosen);
    if (value == spec::value_text(field, given)) return;
    told.push_back(
        cat(key, " = ", value, ": the fastest that memory.limit_gb = ", exact(given.memory.limit_gb), " allows"));
  };
  if (given.memory.limit_gb == 0) return told;
  tell("memory.recompute");
  if (chosen.memory.optimizer != Tier::Resident) tell("memory.optimizer");
  if (chosen.memory.gradients != Tier::Resident) tell("memory.gradients");
  if (chosen.memory.parameters != Tier::Resident) tell("memory.parameters");
  if (chosen.memory.activations != Tier::Resident) tell("memory.activations");
  tell("memory.activation_blocks");
  return told;
}

}  // namespace braid::train
