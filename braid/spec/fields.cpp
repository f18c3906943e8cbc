// Functions of a single field: its value as TOML, its rule as text, and the check of its rule.
#include "braid/spec/fields.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "braid/base/text.h"
#include "braid/spec/parameter_groups.h"
#include "braid/spec/partition.h"
#include "braid/spec/peer_names.h"

namespace braid::spec {
namespace {

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Overloaded(Cases...) -> Overloaded<Cases...>;

// The cast is safe: a Member only finds the value and changes nothing.
template <class T>
const T& value(Member<T> member, const RunSpec& spec) {
  return member(const_cast<RunSpec&>(spec));
}

std::string group_text(const ParameterGroup& group) {
  const std::string scale = !group.frozen || has_rates(group) ? cat(", lr_scale = ", exact(group.lr_scale)) : "";
  const std::string decay = group.weight_decay ? cat(", weight_decay = ", exact(*group.weight_decay)) : "";
  return cat("{match = ", toml_text(group.match), scale, decay, group.frozen ? ", frozen = true}" : "}");
}

std::optional<Problem> broken_groups(const Field& field, const Groups& groups) {
  const auto problem = [&](const char* rule) { return Problem{field.key, toml_text(groups), rule, ""}; };
  if (groups.size() > 15) return problem("must be at most 15 groups");
  for (const ParameterGroup& group : groups) {
    const auto rate = [](double value) { return std::isfinite(value) && value >= 0; };
    if (group.match.empty()) return problem("must have a match that is not empty in every group");
    if (group.frozen && has_rates(group)) return problem("must have no rates in a group that is frozen");
    if (!rate(group.lr_scale) || !rate(group.weight_decay.value_or(0))) {
      return problem("must have finite rates of at least 0");
    }
  }
  return {};
}

template <class Value>
std::string list_text(const std::vector<Value>& values) {
  Strings parts;
  for (const auto& value : values) parts.push_back(toml_text(value));
  return cat("[", joined(parts), "]");
}

std::string text(const IntRange& range) {
  const bool no_upper = range.max >= 2147483647;
  if (no_upper) return cat("at least ", range.min);
  return cat("from ", range.min, " to ", range.max);
}

std::string text(const RealRange& range) {
  const std::string lower = (range.lower == Bound::Open ? "more than " : "at least ") + exact(range.min);
  if (std::isinf(range.max)) return lower;
  return lower + (range.upper == Bound::Open ? " and less than " : " and at most ") + exact(range.max);
}

std::string text(const OneOf& rule) {
  std::string all;
  for (size_t i = 0; i < rule.words.size(); ++i) {
    const bool last = i + 1 == rule.words.size();
    all += (i == 0 ? "" : last && rule.prefix.empty() ? " or " : ", ") + toml_text(rule.words[i]);
  }
  if (!rule.prefix.empty()) all += " or " + rule.prefix + "...";
  return all;
}

std::string text(const WordOrNumbers& rule) {
  return text(OneOf{rule.words}) + ", or numbers with commas between them";
}

// Returns the word that `value` means in another program (peer_words.cpp), else the nearest of `words`.
std::string meant_word(const Field& field, const std::string& value, const Strings& words) {
  const std::string_view meant = word_of_peer(field.key, value);
  return meant.empty() ? nearest(value, words) : std::string(meant);
}

Problem broken(const Field& field, std::string value, std::string nearest) {
  return {field.key, std::move(value), "must be " + rule_text(field.rule), std::move(nearest)};
}

std::optional<Problem> broken_real(const Field& field, double value) {
  if (!std::isfinite(value)) return Problem{field.key, toml_text(value), "must be a finite number", ""};
  const auto* range = std::get_if<RealRange>(&field.rule);
  if (!range) return {};
  // An open bound has no nearest number.
  if (value < range->min || (value == range->min && range->lower == Bound::Open)) {
    return broken(field, toml_text(value), range->lower == Bound::Open ? "" : toml_text(range->min));
  }
  if (value > range->max || (value == range->max && range->upper == Bound::Open)) {
    return broken(field, toml_text(value), range->upper == Bound::Open ? "" : toml_text(range->max));
  }
  return {};
}

std::optional<Problem> broken_string(const Field& field, const std::string& value) {
  if (std::holds_alternative<NotEmpty>(field.rule) && value.empty()) {
    return Problem{field.key, toml_text(value), "must not be empty", ""};
  }
  if (const auto* rule = std::get_if<WordOrNumbers>(&field.rule)) {
    const bool word = std::find(rule->words.begin(), rule->words.end(), value) != rule->words.end();
    if (word || partition_list(value)) return {};
    const std::string meant = meant_word(field, value, rule->words);
    return broken(field, toml_text(value), toml_text(meant.empty() ? rule->words.front() : meant));
  }
  const auto* rule = std::get_if<OneOf>(&field.rule);
  if (!rule || std::find(rule->words.begin(), rule->words.end(), value) != rule->words.end()) return {};
  if (!rule->prefix.empty() && value.starts_with(rule->prefix) && value.size() > rule->prefix.size()) return {};
  const std::string word = meant_word(field, value, rule->words);
  return broken(field, toml_text(value), word.empty() ? "" : toml_text(word));
}

}  // namespace

const Field* find_field(const std::string& key) {
  for (const auto& field : fields()) {
    if (field.key == key) return &field;
  }
  return nullptr;
}

bool is_section(const std::string& name) {
  return std::ranges::any_of(sections(), [&](const Section& section) { return section.name == name; });
}

std::string section_of(const Field& field) { return field.key.substr(0, field.key.find('.')); }
std::string leaf_of(const Field& field) { return field.key.substr(field.key.find('.') + 1); }

std::string type_text(const Field& field) {
  if (std::holds_alternative<WordOrNumbers>(field.rule)) return "string or list of numbers";
  return std::visit(
      Overloaded{[](Member<bool>) { return "true or false"; }, [](Member<int>) { return "integer"; },
                 [](Member<uint64_t>) { return "integer"; }, [](Member<double>) { return "number"; },
                 [](Member<std::string>) { return "string"; }, [](Choice) { return "string"; },
                 [](Member<Strings>) { return "list of strings"; }, [](Member<Reals>) { return "list of numbers"; },
                 [](Member<Groups>) { return "list of tables"; }},
      field.slot);
}

std::string rule_text(const Rule& rule) {
  return std::visit(Overloaded{[](const Anything&) { return std::string(); },
                               [](const NotEmpty&) { return std::string("not empty"); },
                               [](const auto& other) { return text(other); }},
                    rule);
}

std::string toml_text(int64_t value) { return cat(value); }
std::string toml_text(uint64_t value) { return cat(value); }
std::string toml_text(double value) { return exact(value); }
std::string toml_text(const Strings& values) { return list_text(values); }
std::string toml_text(const Reals& values) { return list_text(values); }
std::string toml_text(const Groups& values) {
  Strings tables;
  for (const ParameterGroup& group : values) tables.push_back(group_text(group));
  return cat("[", joined(tables), "]");
}

std::string value_text(const Field& field, const RunSpec& spec) {
  return std::visit(Overloaded{[&](Member<bool> member) { return std::string(value(member, spec) ? "true" : "false"); },
                               [&](Member<int> member) { return toml_text(int64_t{value(member, spec)}); },
                               [&](Choice choice) { return toml_text(std::string(choice.word(spec))); },
                               [&](auto member) { return toml_text(value(member, spec)); }},
                    field.slot);
}

Strings settings(const RunSpec& spec) {
  Strings all;
  for (const Field& field : fields()) all.push_back(cat(field.key, " = ", value_text(field, spec)));
  return all;
}

std::optional<Problem> broken_rule(const Field& field, int64_t value) {
  const auto* range = std::get_if<IntRange>(&field.rule);
  if (!range || (value >= range->min && value <= range->max)) return {};
  const auto rule = value < range->min ? cat("must be at least ", range->min) : cat("must be at most ", range->max);
  return Problem{field.key, toml_text(value), rule, toml_text(std::clamp(value, range->min, range->max))};
}

std::optional<Problem> broken_rule(const Field& field, const RunSpec& spec) {
  using Result = std::optional<Problem>;
  return std::visit(
      Overloaded{[&](Member<int> member) { return broken_rule(field, int64_t{value(member, spec)}); },
                 [&](Member<uint64_t> member) -> Result {
                   const uint64_t seen = value(member, spec);
                   if (seen <= uint64_t{INT64_MAX}) return broken_rule(field, static_cast<int64_t>(seen));
                   return Problem{field.key, toml_text(seen), cat("must be at most ", INT64_MAX), cat(INT64_MAX)};
                 },
                 [&](Member<double> member) { return broken_real(field, value(member, spec)); },
                 [&](Member<std::string> member) { return broken_string(field, value(member, spec)); },
                 [&](Member<Groups> member) { return broken_groups(field, value(member, spec)); },
                 [](auto) { return Result(); }},
      field.slot);
}

}  // namespace braid::spec
