// Tries every combination of a few values of each key.
#include "braid/plan/fitting_changes.h"

#include <algorithm>
#include <optional>

#include "braid/base/text.h"
#include "braid/plan/fastest_recompute.h"
#include "braid/plan/nominal_cluster.h"
#include "braid/spec/activation_blocks.h"
#include "braid/spec/recompute.h"

namespace braid::plan {
namespace {

// A value of a key that needs less memory than the run's own.
struct Alternative {
  std::vector<std::string> overrides;
  std::function<void(RunSpec&)> apply;
};
using Alternatives = std::vector<Alternative>;  // of one key

constexpr const char* kRecompute = "memory.recompute=";

std::vector<Alternatives> alternatives(const RunSpec& spec) {
  Alternatives tiers, recompute, zero, microbatches;
  for (const std::vector<DiskTier>& set : disk_tiers()) {
    Alternative moved{{}, [&set](RunSpec& run) {
                        for (const DiskTier& each : set) run.memory.*each.tier = Tier::Disk;
                      }};
    for (const DiskTier& each : set) {
      if (is_resident(spec.memory.*each.tier)) moved.overrides.push_back(each.override);
    }
    if (!moved.overrides.empty()) tiers.push_back(std::move(moved));
  }
  for (const char* policy : {"selective", "full"}) {
    if (spec.memory.recompute == policy) recompute.clear();
    if (spec.memory.recompute == policy || spec.memory.recompute == "full") continue;
    recompute.push_back({{cat(kRecompute, policy)}, [policy](RunSpec& run) { run.memory.recompute = policy; }});
  }
  recompute.push_back({{kRecompute}, [](RunSpec& run) { run.memory.recompute = spec::kAutoRecompute; }});
  if (spec.memory.recompute == spec::kAutoRecompute) recompute.clear();
  for (int stage = spec.sync.zero + 1; stage <= 3 && spec.mesh.data > 1; ++stage) {
    zero.push_back({{cat("sync.zero=", stage)}, [stage](RunSpec& run) { run.sync.zero = stage; }});
  }
  for (int size = spec.train.microbatch - 1; size >= 1; --size) {
    if (spec.train.microbatch % size != 0) continue;
    microbatches.push_back({{cat("train.microbatch=", size)}, [size](RunSpec& run) { run.train.microbatch = size; }});
  }
  return {tiers, recompute, zero, microbatches};
}

struct Candidate {
  RunSpec spec;
  std::vector<std::string> overrides;
};

// Returns the run with each combination of at most one alternative of each key, the run itself first.
std::vector<Candidate> combinations(const RunSpec& spec) {
  std::vector<Candidate> all{{spec, {}}};
  for (const Alternatives& of_key : alternatives(spec)) {
    const size_t before = all.size();
    for (const Alternative& alternative : of_key) {
      for (size_t i = 0; i < before; ++i) {
        Candidate changed = all[i];
        alternative.apply(changed.spec);
        changed.overrides.insert(changed.overrides.end(), alternative.overrides.begin(), alternative.overrides.end());
        all.push_back(std::move(changed));
      }
    }
  }
  return all;
}

bool contains(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  return std::ranges::all_of(some, [&](const auto& each) { return std::ranges::find(all, each) != all.end(); });
}

std::vector<std::string> keys_of(const std::vector<std::string>& overrides) {
  std::vector<std::string> keys;
  for (const std::string& each : overrides) keys.push_back(each.substr(0, each.find('=')));
  return keys;
}

struct Fitting {
  FittingChange change;
  std::vector<std::string> overrides;
};

// Returns the change if the run fits with it. Replaces "auto" by the fastest policies that fit, in the overrides too.
std::optional<Fitting> fitting(Candidate candidate, const RunSpec& given, int64_t limit,
                               const std::function<bool(const RunSpec&)>& is_legal) {
  std::optional<Prediction> prediction;
  if (candidate.spec.memory.recompute == spec::kAutoRecompute) {
    const auto found = fastest_recompute(candidate.spec, limit, is_legal);
    if (!found) return std::nullopt;
    prediction = found->prediction;
    const auto open = std::ranges::find(candidate.overrides, kRecompute);
    const bool is_open = open != candidate.overrides.end();
    const bool moves_others = found->activation_blocks != given.memory.activation_blocks;
    if (is_open && found->policies == given.memory.recompute && !moves_others) return std::nullopt;
    if (is_open) *open += found->policies;
    if (is_open && moves_others) {
      candidate.overrides.push_back(cat("memory.activation_blocks=", found->activation_blocks));
    }
  } else if (is_legal(candidate.spec)) {
    prediction = nominal_prediction(candidate.spec);
  }
  if (!prediction || prediction->most_bytes() > limit) return std::nullopt;
  return Fitting{{joined(candidate.overrides, " "), prediction->most_bytes(), prediction->step_seconds()},
                 candidate.overrides};
}

// Returns true if the change has more than it needs: fewer of its keys are enough, with the same values or faster.
bool has_more_than_needed(const Fitting& each, const std::vector<Fitting>& all) {
  return std::ranges::any_of(all, [&](const Fitting& other) {
    if (other.overrides.size() >= each.overrides.size()) return false;
    return contains(each.overrides, other.overrides) ||
           (contains(keys_of(each.overrides), keys_of(other.overrides)) && other.change.times <= each.change.times);
  });
}

}  // namespace

const std::vector<std::vector<DiskTier>>& disk_tiers() {
  constexpr DiskTier kOptimizer{"memory.optimizer=disk", &MemorySpec::optimizer};
  constexpr DiskTier kGradients{"memory.gradients=disk", &MemorySpec::gradients};
  constexpr DiskTier kParameters{"memory.parameters=disk", &MemorySpec::parameters};
  constexpr DiskTier kActivations{"memory.activations=disk", &MemorySpec::activations};
  static const std::vector<std::vector<DiskTier>> kSets = {{kOptimizer},
                                                           {kActivations},
                                                           {kOptimizer, kActivations},
                                                           {kOptimizer, kGradients},
                                                           {kOptimizer, kParameters},
                                                           {kOptimizer, kGradients, kParameters},
                                                           {kOptimizer, kGradients, kParameters, kActivations}};
  return kSets;
}

std::vector<FittingChange> fitting_changes(const RunSpec& spec, int64_t limit, size_t most,
                                           const std::function<bool(const RunSpec&)>& is_legal) {
  const double seconds = nominal_prediction(spec).value().step_seconds();
  std::vector<Fitting> all;
  for (Candidate& candidate : combinations(spec)) {
    if (candidate.overrides.empty()) continue;
    if (auto found = fitting(std::move(candidate), spec, limit, is_legal)) all.push_back(std::move(*found));
  }
  for (Fitting& each : all) each.change.times /= seconds;
  std::ranges::stable_sort(all, {}, [](const Fitting& each) { return each.change.times; });
  std::vector<FittingChange> fastest;
  std::vector<std::vector<std::string>> chosen;  // the keys of each
  for (const Fitting& each : all) {
    const auto keys = keys_of(each.overrides);
    if (has_more_than_needed(each, all) || std::ranges::find(chosen, keys) != chosen.end()) continue;
    chosen.push_back(keys);
    fastest.push_back(each.change);
    if (fastest.size() == most) break;
  }
  return fastest;
}

}  // namespace braid::plan
