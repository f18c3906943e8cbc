// The assignment of a TOML value to a field: one function per type of field.
#include "braid/spec/assign.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <sstream>

#include "braid/base/text.h"
#include "braid/spec/peer_names.h"

namespace braid::spec {
namespace {

// Returns `text` as a TOML value; nothing if it is not exactly one value.
std::optional<TomlValue> toml_value(const std::string& text) {
  const auto document = toml_document("value = " + text, "override");
  if (!document.problems.empty() || document.root.size() != 1) return {};
  return document.root[0].second;
}

// Returns a list such as "[a.txt, b.txt]" with its words in quotes.
std::string quoted_list(const std::string& text) {
  Strings words;
  std::istringstream inside(text.substr(1, text.size() - 2));
  for (std::string word; std::getline(inside, word, ',');) {
    if (!trimmed(word).empty()) words.push_back(trimmed(word));
  }
  return toml_text(words);
}

}  // namespace

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

std::optional<TomlValue> override_value(const Field& field, const std::string& text) {
  auto value = toml_value(text);
  const bool quoted = text.find_first_of("\"'") != std::string::npos;
  if (quoted) return value;
  if (std::holds_alternative<WordOrNumbers>(field.rule) && value && value->as<TomlList>()) return value;
  const bool text_field =
      std::holds_alternative<Member<std::string>>(field.slot) || std::holds_alternative<Choice>(field.slot);
  if (text_field) return toml_value(toml_text(text));
  const bool list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (std::holds_alternative<Member<Strings>>(field.slot) && list) return toml_value(quoted_list(text));
  return value ? value : toml_value(toml_text(text));
}

namespace {

using Given = std::optional<AssignFault>;

// The operating system would end a path at the NUL.
constexpr const char* kNoNul = "must not hold a NUL";
bool holds_nul(const std::string& text) { return text.find('\0') != std::string::npos; }

Given wrong_type(const Field& field, std::string nearest = "") {
  const std::string type = type_text(field);
  return AssignFault{cat("must be ", type[0] == 'i' ? "an " : "a ", type), std::move(nearest)};
}

// Returns the integer nearest to a number or a quoted number, clamped to the field's range; "" if there is none.
std::string meant_integer(const Field& field, const TomlValue& value) {
  double meant = 0;
  if (const auto* real = value.as<double>()) {
    meant = *real;
  } else if (const auto* quoted = value.as<std::string>()) {
    char* end = nullptr;
    meant = std::strtod(quoted->c_str(), &end);
    if (quoted->empty() || *end != '\0') return "";
  } else {
    return "";
  }
  const auto& range = std::get<IntRange>(field.rule);
  if (!std::isfinite(meant) || std::abs(meant) >= 0x1p63) return "";
  return toml_text(std::clamp(static_cast<int64_t>(std::llround(meant)), range.min, range.max));
}

std::string meant_number(const Field& field, const TomlValue& value) {
  const auto* quoted = value.as<std::string>();
  char* end = nullptr;
  const double meant = quoted ? std::strtod(quoted->c_str(), &end) : 0;
  if (!quoted || quoted->empty() || *end != '\0') return "";
  RunSpec trial;
  std::get<Member<double>>(field.slot)(trial) = meant;
  return broken_rule(field, trial) ? "" : toml_text(meant);
}

Given give(const Field&, bool& to, const TomlValue& value) {
  if (const auto* truth = value.as<bool>()) {
    to = *truth;
    return {};
  }
  const auto* quoted = value.as<std::string>();
  const bool meant = quoted && (*quoted == "true" || *quoted == "false");
  return AssignFault{"must be true or false", meant ? *quoted : ""};
}

Given give(const Field& field, int& to, const TomlValue& value) {
  const auto* integer = value.as<int64_t>();
  if (!integer) return wrong_type(field, meant_integer(field, value));
  if (*integer < std::numeric_limits<int>::min() || *integer > std::numeric_limits<int>::max()) {
    const Problem problem = *broken_rule(field, *integer);
    return AssignFault{problem.rule, problem.nearest};
  }
  to = static_cast<int>(*integer);
  return {};
}

Given give(const Field& field, uint64_t& to, const TomlValue& value) {
  const auto* integer = value.as<int64_t>();
  if (!integer) return wrong_type(field, meant_integer(field, value));
  if (const auto problem = broken_rule(field, *integer)) return AssignFault{problem->rule, problem->nearest};
  to = static_cast<uint64_t>(*integer);
  return {};
}

Given give(const Field& field, double& to, const TomlValue& value) {
  if (const auto* integer = value.as<int64_t>()) {
    to = static_cast<double>(*integer);
  } else if (const auto* real = value.as<double>()) {
    to = *real;
  } else {
    return wrong_type(field, meant_number(field, value));
  }
  return {};
}

// Returns "3,2.5" for the list [3, 2.5]; nothing if `value` is not a list of numbers.
std::optional<std::string> numbers_text(const TomlValue& value) {
  const auto* list = value.as<TomlList>();
  if (!list || list->empty()) return {};
  std::vector<std::string> numbers;
  for (const auto& entry : *list) {
    const auto* integer = entry.as<int64_t>();
    const auto* real = entry.as<double>();
    if (!integer && !real) return {};
    numbers.push_back(integer ? cat(*integer) : exact(*real));
  }
  return joined(numbers, ",");
}

Given give(const Field& field, std::string& to, const TomlValue& value) {
  const auto* text = value.as<std::string>();
  const auto numbers = std::holds_alternative<WordOrNumbers>(field.rule) ? numbers_text(value) : std::nullopt;
  if (numbers) {
    to = *numbers;
    return {};
  }
  if (!text) {
    const bool free = std::holds_alternative<Anything>(field.rule) || std::holds_alternative<NotEmpty>(field.rule);
    return wrong_type(field, free && value.as<int64_t>() ? toml_text(value.written) : "");
  }
  if (holds_nul(*text)) return AssignFault{kNoNul, ""};
  to = *text;
  return {};
}

Given give(const Field& field, Strings& to, const TomlValue& value) {
  if (value.as<std::string>()) return wrong_type(field, "[" + value.written + "]");
  const auto* list = value.as<TomlList>();
  if (!list) return wrong_type(field);
  Strings read;
  for (const auto& entry : *list) {
    const auto* text = entry.as<std::string>();
    if (!text) return wrong_type(field);
    if (holds_nul(*text)) return AssignFault{kNoNul, ""};
    read.push_back(*text);
  }
  to = std::move(read);
  return {};
}

Given give(const Field& field, Reals& to, const TomlValue& value) {
  const auto* list = value.as<TomlList>();
  if (!list) return wrong_type(field);
  Reals read;
  for (const auto& entry : *list) {
    const auto* integer = entry.as<int64_t>();
    const auto* real = entry.as<double>();
    if (!integer && !real) return wrong_type(field);
    read.push_back(integer ? static_cast<double>(*integer) : *real);
  }
  to = std::move(read);
  return {};
}

Given give_number(double& to, const TomlValue& value) {
  const auto* integer = value.as<int64_t>();
  const auto* real = value.as<double>();
  if (!integer && !real) return AssignFault{"must have numbers for lr_scale and weight_decay", ""};
  to = integer ? static_cast<double>(*integer) : *real;
  return {};
}

Given give_group(ParameterGroup& to, const TomlTable& table) {
  for (const auto& [key, value] : table) {
    Given fault;
    if (key == "match") {
      const auto* text = value.as<std::string>();
      if (!text) return AssignFault{"must have a string for match", ""};
      to.match = *text;
    } else if (key == "lr_scale") {
      fault = give_number(to.lr_scale, value);
    } else if (key == "weight_decay") {
      fault = give_number(to.weight_decay.emplace(), value);
    } else if (key == "frozen") {
      const auto* word = value.as<bool>();
      if (!word) return AssignFault{"must have true or false for frozen", ""};
      to.frozen = *word;
    } else {
      return AssignFault{cat("has no key ", key, " in its groups, but match, lr_scale, weight_decay and frozen"), ""};
    }
    if (fault) return fault;
  }
  return {};
}

Given give(const Field& field, Groups& to, const TomlValue& value) {
  const auto* list = value.as<TomlList>();
  if (!list) return wrong_type(field);
  Groups read;
  for (const auto& entry : *list) {
    const auto* table = entry.as<TomlTable>();
    if (!table) return wrong_type(field);
    if (const Given fault = give_group(read.emplace_back(), *table)) return fault;
  }
  to = std::move(read);
  return {};
}

template <class T>
Given give_slot(const Field& field, Member<T> member, const TomlValue& value, RunSpec& spec) {
  return give(field, member(spec), value);
}

Given give_slot(const Field& field, Choice choice, const TomlValue& value, RunSpec& spec) {
  const auto* name = value.as<std::string>();
  if (name && choice.choose(spec, *name)) return {};
  std::string meant(name ? word_of_peer(field.key, *name) : "");
  if (name && !name->empty() && meant.empty()) meant = nearest(*name, std::get<OneOf>(field.rule).words);
  return AssignFault{"must be " + rule_text(field.rule), meant.empty() ? "" : toml_text(meant)};
}

}  // namespace

std::optional<AssignFault> assign(const Field& field, const TomlValue& value, RunSpec& spec) {
  return std::visit([&](auto slot) { return give_slot(field, slot, value, spec); }, field.slot);
}

}  // namespace braid::spec
