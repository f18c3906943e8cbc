#include "braid/train/memory_limit.h"

#include <cmath>
#include <functional>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/fitting_changes.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"

namespace braid::train {
namespace {

constexpr size_t kMostChanges = 3;

[[noreturn]] void refuse(const RunSpec& spec, const plan::Prediction& prediction, int64_t limit,
                         const std::function<bool(const RunSpec&)>& is_legal) {
  std::string rule = cat("must hold what a rank needs: the fullest would hold ",
                         human_bytes(static_cast<double>(prediction.most_bytes())), " (",
                         joined(prediction.fullest().parts_text()), ")");
  const auto changes = plan::fitting_changes(spec, limit, kMostChanges, is_legal);
  for (const plan::FittingChange& change : changes) {
    rule += cat("; with ", change.overrides, " it holds ", human_bytes(static_cast<double>(change.bytes)),
                ", a step takes ", fixed(change.times, 2), " times as long");
  }
  if (changes.empty()) rule += "; no tier, recomputation, ZeRO stage or smaller microbatch makes it fit";
  throw ConfigError({{"memory.limit_gb", spec::value_text(*spec::find_field("memory.limit_gb"), spec), rule, ""}});
}

}  // namespace

RunSpec within_memory_limit(const RunSpec& given, const spec::HostLimits& limits) {
  if (given.memory.limit_gb == 0) return given;
  const auto limit = std::llround(std::ldexp(given.memory.limit_gb, 30));
  const auto is_legal = [&](const RunSpec& spec) { return spec::problems(spec, limits).empty(); };
  auto prediction = plan::nominal_prediction(given);
  if (!prediction) return given;
  RunSpec chosen = given;
  // Takes the first set that fits, or else the one that holds least. Small tensors hold less than what moves them.
  for (const std::vector<plan::DiskTier>& set : plan::disk_tiers()) {
    if (prediction->most_bytes() <= limit) break;
    RunSpec moved = given;
    for (const plan::DiskTier& each : set) {
      if (given.memory.*each.tier == Tier::Auto) moved.memory.*each.tier = Tier::Disk;
    }
    const auto there = plan::nominal_prediction(moved);
    if (!there || there->most_bytes() >= prediction->most_bytes() || !is_legal(moved)) continue;
    prediction = there;
    chosen = std::move(moved);
  }
  for (const plan::DiskTier& each : plan::disk_tiers().back()) {
    if (chosen.memory.*each.tier == Tier::Auto) chosen.memory.*each.tier = Tier::Resident;
  }
  if (prediction->most_bytes() > limit && !spec::is_measured(given.pipeline)) {
    refuse(chosen, *prediction, limit, is_legal);
  }
  return chosen;
}

}  // namespace braid::train
