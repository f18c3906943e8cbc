// Reading: which field a key means, whether the value has its type, and what the user probably meant.
#include "braid/spec/parse.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>

#include "braid/base/text.h"
#include "braid/spec/fields.h"
#include "braid/spec/toml_document.h"

namespace braid {
namespace {

// What is known so far: the values that could be read, the keys whose value could not, and the problems.
struct Reading {
  RunSpec spec;
  std::set<std::string> unread;
  std::vector<Problem> problems;
};

// The outcome of giving a value to a field: nothing, or the rule that was broken and the value that was meant.
struct Fault {
  std::string rule;
  std::string nearest;
};
using Given = std::optional<Fault>;

Given wrong_type(const Field& field, std::string nearest = "") {
  const std::string type = type_text(field);
  return Fault{cat("must be ", type[0] == 'i' ? "an " : "a ", type), std::move(nearest)};
}

// The integer that a number or a quoted number stands for, if the field can hold it.
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

Given give(const Field& field, int& to, const TomlValue& value) {
  const auto* integer = value.as<int64_t>();
  if (!integer) return wrong_type(field, meant_integer(field, value));
  if (*integer < std::numeric_limits<int>::min() || *integer > std::numeric_limits<int>::max()) {
    const Problem problem = *broken_rule(field, *integer);
    return Fault{problem.rule, problem.nearest};
  }
  to = static_cast<int>(*integer);
  return {};
}

Given give(const Field& field, uint64_t& to, const TomlValue& value) {
  const auto* integer = value.as<int64_t>();
  if (!integer) return wrong_type(field, meant_integer(field, value));
  if (const auto problem = broken_rule(field, *integer)) return Fault{problem->rule, problem->nearest};
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

Given give(const Field& field, std::string& to, const TomlValue& value) {
  const auto* text = value.as<std::string>();
  if (!text) {
    const bool free = std::holds_alternative<Anything>(field.rule) || std::holds_alternative<NotEmpty>(field.rule);
    return wrong_type(field, free && value.as<int64_t>() ? toml_text(value.written) : "");
  }
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
    read.push_back(*text);
  }
  to = std::move(read);
  return {};
}

Given give(const Field& field, Ints& to, const TomlValue& value) {
  const auto* list = value.as<TomlList>();
  if (!list) return wrong_type(field);
  Ints read;
  for (const auto& entry : *list) {
    const auto* integer = entry.as<int64_t>();
    if (!integer) return wrong_type(field);
    // Entries are counts of blocks: what does not fit an int is as wrong as the largest int, and is found there.
    constexpr int64_t kMax = std::numeric_limits<int>::max();
    read.push_back(static_cast<int>(std::clamp(*integer, -kMax, kMax)));
  }
  to = std::move(read);
  return {};
}

void give(const Field& field, const TomlValue& value, Reading& reading) {
  const Given fault = std::visit([&](auto member) { return give(field, member(reading.spec), value); }, field.slot);
  reading.unread.erase(field.key);  // an override may repair the file
  if (!fault) return;
  reading.unread.insert(field.key);
  reading.problems.push_back({field.key, value.written, fault->rule, fault->nearest});
}

// The known key that `key` was probably meant to be: the same name in another section, then a similar one in its own
// section, then a similar one anywhere.
std::string nearest_key(const std::string& key) {
  const std::string section = key.substr(0, key.find('.')), leaf = key.substr(key.rfind('.') + 1);
  Strings all, own;
  for (const auto& field : fields()) {
    if (leaf_of(field) == leaf) return field.key;
    all.push_back(field.key);
    if (section_of(field) == section) own.push_back(leaf_of(field));
  }
  const std::string sibling = nearest(leaf, own);
  return sibling.empty() ? nearest(key, all) : section + "." + sibling;
}

std::string nearest_section(const std::string& name) {
  Strings names;
  for (const auto& section : sections()) names.push_back(section.name);
  return nearest(name, names);
}

bool is_section(const std::string& name) {
  return std::any_of(sections().begin(), sections().end(), [&](const Section& s) { return s.name == name; });
}

void read_section(const std::string& section, const TomlTable& table, Reading& reading) {
  for (const auto& [leaf, value] : table) {
    const std::string key = section + "." + leaf;
    if (const Field* field = find_field(key)) {
      give(*field, value, reading);
    } else {
      reading.problems.push_back({key, value.written, "is not a known key", nearest_key(key)});
    }
  }
}

void read_document(const TomlTable& root, Reading& reading) {
  for (const auto& [name, value] : root) {
    const auto* table = value.as<TomlTable>();
    if (table && is_section(name)) {
      read_section(name, *table, reading);
    } else if (table) {
      reading.problems.push_back({"[" + name + "]", "", "is not a known section", nearest_section(name)});
    } else if (is_section(name)) {
      reading.problems.push_back({name, value.written, "must be a section, [" + name + "]", ""});
    } else {
      reading.problems.push_back({name, value.written, "must be in a section", nearest_key(name)});
    }
  }
}

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t"), last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

// `text` as a TOML value; nothing when it is none, or is more than one.
std::optional<TomlValue> toml_value(const std::string& text) {
  const auto document = toml_document("value = " + text, "override");
  if (!document.problems.empty() || document.root.size() != 1) return {};
  return document.root[0].second;
}

// "[a.txt, b.txt]" with its words in quotes.
std::string quoted_list(const std::string& text) {
  Strings words;
  std::istringstream inside(text.substr(1, text.size() - 2));
  for (std::string word; std::getline(inside, word, ',');) {
    if (!trimmed(word).empty()) words.push_back(trimmed(word));
  }
  return toml_text(words);
}

// The value of an override: as TOML, or bare words where the field holds strings.
std::optional<TomlValue> override_value(const Field& field, const std::string& text) {
  auto value = toml_value(text);
  const bool quoted = text.find_first_of("\"'") != std::string::npos;
  if (quoted) return value;
  if (std::holds_alternative<Member<std::string>>(field.slot)) return toml_value(toml_text(text));
  const bool list = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (std::holds_alternative<Member<Strings>>(field.slot) && list) return toml_value(quoted_list(text));
  return value ? value : toml_value(toml_text(text));
}

void read_override(const std::string& word, Reading& reading) {
  const auto equals = word.find('=');
  const std::string key = trimmed(word.substr(0, equals));
  if (equals == std::string::npos || key.empty()) {
    const std::string meant = find_field(key) ? key + "=" + value_text(*find_field(key), RunSpec()) : "";
    reading.problems.push_back({"override", toml_text(word), "must have the form section.key=value", meant});
    return;
  }
  const std::string text = trimmed(word.substr(equals + 1));
  const Field* field = find_field(key);
  if (!field) {
    reading.problems.push_back({key, text, "is not a known key", nearest_key(key)});
    return;
  }
  const auto value = override_value(*field, text);
  if (value) {
    give(*field, *value, reading);
  } else {
    reading.unread.insert(field->key);
    reading.problems.push_back({field->key, text, "is not a TOML value", ""});
  }
}

RunSpec checked(const TomlDocument& document, const std::vector<std::string>& overrides, const HostLimits& limits) {
  Reading reading;
  reading.problems = document.problems;
  read_document(document.root, reading);
  for (const auto& word : overrides) read_override(word, reading);
  if (document.problems.empty()) {
    for (auto& problem : problems(reading.spec, limits, reading.unread)) reading.problems.push_back(std::move(problem));
  } else {
    for (const auto& field : fields()) {
      if (auto problem = broken_rule(field, reading.spec)) reading.problems.push_back(std::move(*problem));
    }
  }
  if (!reading.problems.empty()) throw ConfigError(std::move(reading.problems));
  return reading.spec;
}

}  // namespace

RunSpec parse_run(const std::string& toml_text, const std::string& origin, const std::vector<std::string>& overrides,
                  const HostLimits& limits) {
  return checked(toml_document(toml_text, origin), overrides, limits);
}

RunSpec read_run(const std::string& path, const std::vector<std::string>& overrides, const HostLimits& limits) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  const bool failed = !file || (text.str().empty() && file.peek() != std::ifstream::traits_type::eof());
  if (!failed && !file.bad()) return parse_run(text.str(), path, overrides, limits);
  TomlDocument unread;
  unread.problems.push_back({path, "", cat("cannot be read: ", std::strerror(errno)), ""});
  return checked(unread, overrides, limits);
}

}  // namespace braid
