// Reads the values of a table and checks them against their rules.
#include "braid/plan/table_reader.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "braid/base/text.h"
#include "braid/spec/fields.h"

namespace braid::plan {
namespace {

std::optional<double> number(const spec::TomlValue& value) {
  if (const auto* real = value.as<double>()) return *real;
  if (const auto* whole = value.as<int64_t>()) return static_cast<double>(*whole);
  return {};
}

std::string text_of(const NumberRule& rule) {
  const bool open = rule.lower == NumberRule::End::Open;
  const std::string most = rule.most >= 1e18 ? "" : cat(" and at most ", exact(rule.most));
  return cat("must be a number ", open ? "more than " : "of at least ", exact(rule.least), most);
}

bool is_in(const NumberRule& rule, double value) {
  const bool above = rule.lower == NumberRule::End::Open ? value > rule.least : value >= rule.least;
  return std::isfinite(value) && above && value <= rule.most;
}

std::string nearest_in(const NumberRule& rule, double value) {
  if (value > rule.most) return spec::toml_text(rule.most);
  if (value < rule.least && rule.lower == NumberRule::End::Closed) return spec::toml_text(rule.least);
  return "";
}

}  // namespace

TableReader::TableReader(const spec::TomlTable& table, std::string path, const std::string& origin,
                         std::vector<Problem>& problems)
    : table_(table), path_(std::move(path)), origin_(origin), problems_(problems) {}

const spec::TomlValue* TableReader::look(const std::string& key) const {
  const auto found = std::ranges::find(table_, key, [](const auto& entry) { return entry.first; });
  return found == table_.end() ? nullptr : &found->second;
}

std::string TableReader::path_of(const std::string& key) const {
  return path_.empty() || key.empty() ? path_ + key : cat(path_, ".", key);
}

const spec::TomlValue* TableReader::find(const char* key, TableSource given) {
  known_.emplace_back(key);
  const spec::TomlValue* value = look(key);
  if (!value && given == TableSource::Needed) refuse(key, "must be given");
  return value;
}

void TableReader::refuse(const std::string& key, const std::string& rule, const std::string& nearest) {
  const spec::TomlValue* value = look(key);
  const std::string place = value && value->line > 0 ? cat(origin_, ":", value->line) : origin_;
  problems_.push_back({path_of(key), value ? value->written : "", rule, nearest, place});
}

void TableReader::read(const char* key, const NumberRule& rule, double unit, double& to) {
  const spec::TomlValue* value = find(key, rule.given);
  if (!value) return;
  const std::optional<double> written = number(*value);
  if (written && is_in(rule, *written)) {
    to = *written * unit;
  } else {
    refuse(key, text_of(rule), written ? nearest_in(rule, *written) : "");
  }
}

void TableReader::read(const char* key, int& to, TableSource given) {
  const spec::TomlValue* value = find(key, given);
  if (!value) return;
  const auto* whole = value->as<int64_t>();
  const int64_t nearest = whole ? std::clamp<int64_t>(*whole, 1, kMostCounted) : 0;
  if (!whole || nearest != *whole) {
    return refuse(key, cat("must be an integer from 1 to ", kMostCounted), whole ? cat(nearest) : "");
  }
  to = static_cast<int>(nearest);
}

void TableReader::read(const char* key, std::string& to) {
  const spec::TomlValue* value = find(key, TableSource::Optional);
  if (!value) return;
  if (const auto* words = value->as<std::string>()) {
    to = *words;
  } else {
    refuse(key, "must be a string");
  }
}

void TableReader::read(const char* key, bool& to) {
  const spec::TomlValue* value = find(key, TableSource::Optional);
  if (!value) return;
  if (const auto* truth = value->as<bool>()) {
    to = *truth;
  } else {
    refuse(key, "must be true or false");
  }
}

const spec::TomlTable* TableReader::table(const char* key, TableSource given) {
  const spec::TomlValue* value = find(key, given);
  if (!value) return nullptr;
  const auto* found = value->as<spec::TomlTable>();
  if (!found) refuse(key, "must be a table");
  return found;
}

const spec::TomlList* TableReader::list(const char* key, TableSource given) {
  const spec::TomlValue* value = find(key, given);
  if (!value) return nullptr;
  const auto* found = value->as<spec::TomlList>();
  if (!found) refuse(key, "must be a list");
  return found;
}

void TableReader::refuse_unknown_keys(std::string (*meant)(const std::string& key)) {
  for (const auto& [key, value] : table_) {
    if (std::ranges::find(known_, key) != known_.end()) continue;
    refuse(key, "is not a known key", meant ? meant(key) : nearest(key, known_));
  }
}

}  // namespace braid::plan
