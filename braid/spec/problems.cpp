// The check of all rules that can be checked, and the search for the nearest value that repairs a broken rule.
#include "braid/spec/problems.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <iterator>
#include <limits>

#include "braid/base/text.h"
#include "braid/model/shape.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/combine.h"
#include "braid/spec/cross_rules.h"
#include "braid/spec/fields.h"
#include "braid/spec/partition.h"
#include "braid/spec/recompute.h"
#include "braid/spec/trained.h"

namespace braid::spec {
namespace {

// The rules that can be checked: none of their keys is unreadable or breaks a rule of its own.
using Rules = std::vector<const CrossRule*>;
Rules judged(const std::set<std::string>& faulty) {
  Rules rules;
  for (const auto& rule : cross_rules()) {
    const bool skip =
        std::any_of(rule.keys.begin(), rule.keys.end(), [&](const std::string& key) { return faulty.contains(key); });
    if (!skip) rules.push_back(&rule);
  }
  return rules;
}

// Returns distant values of keys[0] worth trying: the values of the rule's other keys, and batches that fit the mesh.
std::vector<int64_t> far_candidates(const Strings& keys, RunSpec spec) {
  std::vector<int64_t> values;
  for (const auto& key : keys) {
    if (const auto* member = std::get_if<Member<int>>(&find_field(key)->slot)) values.push_back((*member)(spec));
  }
  const int64_t unit = batch_unit(spec);
  if (keys[0] == "train.batch" && unit > 0 && unit <= std::numeric_limits<int>::max()) {
    const auto per_rank = static_cast<uint64_t>(std::max<int64_t>(spec.train.batch / unit, 1));
    for (const uint64_t count : {per_rank, per_rank + 1, std::bit_floor(per_rank), std::bit_ceil(per_rank)}) {
      values.push_back(unit * static_cast<int64_t>(count));
    }
  }
  const int64_t start = values[0];
  std::sort(values.begin(), values.end(),
            [&](int64_t a, int64_t b) { return std::abs(a - start) < std::abs(b - start); });
  return values;
}

// Returns a value of keys[0] with which all rules in `must_hold` hold; "" if it finds none. Among those values it takes
// the one that breaks the fewest of the `rules` that hold now, then the nearest.
std::string nearest_integer(const Strings& keys, const View& at, const Rules& must_hold, const Rules& rules) {
  constexpr int64_t kReach = 4096;
  const auto range = std::get<IntRange>(find_field(keys[0])->rule);
  RunSpec trial = at.spec;
  int& value = std::get<Member<int>>(find_field(keys[0])->slot)(trial);
  const int64_t start = value;
  Rules holding;
  for (const auto* rule : rules) {
    if (rule->holds(at)) holding.push_back(rule);
  }
  std::string best;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  const auto consider = [&](int64_t candidate) {
    if (candidate < range.min || candidate > range.max) return;
    value = static_cast<int>(candidate);
    const auto holds = [&](const CrossRule* rule) { return rule->holds({trial, at.limits}); };
    if (!std::all_of(must_hold.begin(), must_hold.end(), holds)) return;
    const int64_t broken = std::count_if(holding.begin(), holding.end(), std::not_fn(holds));
    if (broken >= fewest) return;
    fewest = broken;
    best = toml_text(candidate);
  };
  for (int64_t distance = 0; distance <= kReach && fewest > 0; ++distance) {
    consider(start - distance);
    if (fewest > 0) consider(start + distance);
  }
  for (const int64_t candidate : far_candidates(keys, at.spec)) {
    if (fewest > 0) consider(candidate);
  }
  return best;
}

// Returns the nearest value for an integer out of its range. That may not be `end`, the end of the range, which may
// break the field's rules with other fields.
std::string nearest_in_range(const Field& field, const std::string& end, const View& at, std::set<std::string> faulty) {
  faulty.erase(field.key);
  RunSpec trial = at.spec;
  std::get<Member<int>>(field.slot)(trial) = std::stoi(end);
  Rules own;
  for (const auto* rule : judged(faulty)) {
    if (rule->keys[0] == field.key) own.push_back(rule);
  }
  const auto best = nearest_integer({field.key}, {trial, at.limits}, own, {});
  return best.empty() ? end : best;
}

std::string nearest_value(const CrossRule& broken, const View& at, const Rules& rules) {
  const std::string& key = broken.keys[0];
  if (key == "pipeline.partition") {
    const int stages = num_stages(at.spec), layers = at.spec.model.layers;
    const bool countable = !broken_rule(*find_field("mesh.pipe"), at.spec) && stages >= 1 && layers >= stages;
    return toml_text(countable ? even_partition(layers, stages) : std::string("even"));
  }
  for (const char* off_by_default : {"pipeline.speeds", "memory.paths", "memory.activation_blocks", "sync.consistency",
                                     "checkpoint.keep_best", "checkpoint.host_gib", "run.ranks", "run.placement",
                                     "mesh.sequence_parallel", "mesh.batch_shares", "sync.servers_on"}) {
    if (key == off_by_default) return value_text(*find_field(key), RunSpec());
  }
  if (key == "mesh.context_parallel") return toml_text(cat(ContextParallel::Ulysses));
  if (key == "memory.recompute") {
    const int stages = num_stages(at.spec), units = model::num_units(at.spec.model);
    const bool is_cut = known_stage_units(at.spec, stages).has_value();
    const size_t count = stages <= units ? std::max(stages, 0) : 0;
    return toml_text(nearest_recompute(
        at.spec.memory, is_cut ? stage_blocks(at.spec, stages) : std::vector<int>(count, at.spec.model.layers)));
  }
  if (key == "data.include") {
    Strings kept = at.spec.data.include;
    std::erase(kept, "");
    return toml_text(kept);
  }
  if (std::holds_alternative<Member<int>>(find_field(key)->slot))
    return nearest_integer(broken.keys, at, {&broken}, rules);
  return "";
}

// Returns true if the names of parameters can be read off the model and compared with the groups.
bool has_sound_groups(const std::set<std::string>& faulty, const std::vector<Problem>& found) {
  const auto is_read = [](const std::string& key) { return key == "optimizer.groups" || key.starts_with("model."); };
  return std::ranges::none_of(faulty, is_read) && std::ranges::none_of(found, is_read, &Problem::key);
}

}  // namespace

std::vector<Problem> refused_pairs(const std::vector<Feature>& on, const RunSpec& spec,
                                   const std::set<std::string>& faulty, Purpose purpose) {
  std::vector<Problem> found;
  for (size_t i = 0; i < on.size(); ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const auto pair = combination(on[j], on[i]);
      if (!refused(pair.verdict, purpose) || faulty.contains(key(pair.a)) || faulty.contains(key(pair.b))) continue;
      const Field& field = *find_field(key(pair.a));
      const std::string off = value_text(field, RunSpec());
      const std::string with = pair.a == pair.b ? "" : cat(" with ", text(pair.b));
      found.push_back({field.key, value_text(field, spec), cat("must be ", off, with, ", since ", pair.why), off});
    }
  }
  return found;
}

std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits) { return problems(spec, limits, {}); }

bool has_problems(const RunSpec& spec, const HostLimits& limits) {
  const View at{spec, limits};
  const std::string unjudged = limits.purpose == Purpose::Plan ? "data.paths" : "";
  const auto is_broken = [&](const Field& field) {
    return field.key != unjudged && broken_rule(field, spec).has_value();
  };
  const auto holds = [&](const CrossRule& rule) {
    return std::ranges::find(rule.keys, unjudged) != rule.keys.end() || rule.holds(at);
  };
  if (std::ranges::any_of(fields(), is_broken) || !std::ranges::all_of(cross_rules(), holds)) return true;
  return !refused_pairs(features(spec), spec, {}, limits.purpose).empty() || !group_problems(spec).empty();
}

std::vector<Problem> problems(const RunSpec& spec, const HostLimits& limits, std::set<std::string> unread,
                              const std::set<std::string>& open) {
  std::vector<Problem> found;
  auto& faulty = unread;
  if (limits.purpose == Purpose::Plan) faulty.insert("data.paths");
  for (const auto& field : fields()) {
    if (faulty.contains(field.key)) continue;
    if (auto problem = broken_rule(field, spec)) {
      faulty.insert(field.key);
      found.push_back(std::move(*problem));
    }
  }
  faulty.insert(open.begin(), open.end());
  const View at{spec, limits};
  for (auto& problem : found) {
    const Field& field = *find_field(problem.key);
    const bool integer = std::holds_alternative<Member<int>>(field.slot);
    if (integer) problem.nearest = nearest_in_range(field, problem.nearest, at, faulty);
  }
  const auto rules = judged(faulty);
  for (const auto* rule : rules) {
    if (rule->holds(at)) continue;
    const std::string& key = rule->keys[0];
    found.push_back({key, value_text(*find_field(key), spec), rule->text(at), nearest_value(*rule, at, rules)});
  }
  for (Problem& problem : refused_pairs(features(spec), spec, faulty, limits.purpose))
    found.push_back(std::move(problem));
  if (has_sound_groups(faulty, found)) std::ranges::move(group_problems(spec), std::back_inserter(found));
  return found;
}

}  // namespace braid::spec
