#include "braid/train/memory_limit.h"

#include <cmath>
#include <optional>
#include <string>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/fitting_changes.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"

namespace braid::train {
namespace {

constexpr size_t kMostChanges = 3;

// Returns nothing if the run cannot be predicted, for example because its schedule is a file.
std::optional<plan::Prediction> prediction_of(const RunSpec& spec) {
  const plan::Cluster cluster = plan::nominal_cluster(spec);
  if (!plan::prediction_problems(spec, cluster).empty()) return std::nullopt;
  return plan::predict_run(spec, cluster);
}

std::string parts_text(const plan::RankMemory& memory) {
  std::vector<std::string> parts;
  for (const plan::MemoryPart& part : plan::kMemoryParts) {
    const auto bytes = static_cast<double>(memory.*part.bytes);
    if (bytes > 0) parts.push_back(cat(part.name, " ", human_bytes(bytes)));
  }
  return joined(parts);
}

[[noreturn]] void refuse(const RunSpec& spec, const plan::Prediction& prediction, int64_t limit,
                         const std::function<bool(const RunSpec&)>& is_legal) {
  std::string rule =
      cat("must hold what a rank needs: the fullest would hold ",
          human_bytes(static_cast<double>(prediction.most_bytes())), " (", parts_text(prediction.fullest()), ")");
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
  RunSpec even = given;
  if (spec::is_measured(given.pipeline)) even.pipeline.partition = "even";
  const auto limit = std::llround(std::ldexp(given.memory.limit_gb, 30));
  const auto is_legal = [&](const RunSpec& spec) { return spec::problems(spec, limits).empty(); };
  const auto prediction = prediction_of(even);
  if (!prediction) return given;
  RunSpec chosen = given;
  const bool fits = prediction->most_bytes() <= limit;
  if (given.memory.optimizer == Tier::Auto) {
    even.memory.optimizer = Tier::Disk;
    // Small states need less memory than the chunks of their updates.
    const bool helps = !fits && is_legal(even) && prediction_of(even)->most_bytes() < prediction->most_bytes();
    chosen.memory.optimizer = even.memory.optimizer = helps ? Tier::Disk : Tier::Resident;
  }
  if (fits || spec::is_measured(given.pipeline)) return chosen;
  const auto now = prediction_of(even);
  if (now->most_bytes() > limit) refuse(even, *now, limit, is_legal);
  return chosen;
}

}  // namespace braid::train
