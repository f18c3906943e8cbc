// The parser of configurations. It finds the field of each key, checks the value's type, and suggests what the user
// probably meant.
#include "braid/spec/parse.h"

#include <algorithm>
#include <map>
#include <optional>

#include "braid/base/checked_file.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/model/hf_config.h"
#include "braid/spec/assign.h"
#include "braid/spec/described_model.h"
#include "braid/spec/peer_names.h"
#include "braid/spec/suggested_key.h"

namespace braid::spec {
namespace {

constexpr int64_t kMostTomlBytes = int64_t{16} << 20;  // a configuration is a few kilobytes

// The state of parsing.
struct Reading {
  RunSpec spec;
  std::set<std::string> given;   // keys that were set
  std::set<std::string> unread;  // of these, keys whose value could not be read
  std::set<std::string> meant;   // keys that misspelt keys probably mean
  std::vector<Problem> problems;
  std::map<std::string, int64_t> lines;      // line by key, for keys of the file without an override
  std::map<std::string, int64_t> overrides;  // number of the last override by key
};

void give(const Field& field, const TomlValue& value, Reading& reading) {
  const auto fault = assign(field, value, reading.spec);
  reading.given.insert(field.key);
  reading.unread.erase(field.key);
  std::erase_if(reading.problems, [&](const Problem& earlier) { return earlier.key == field.key; });  // repaired
  if (!fault) return;
  reading.unread.insert(field.key);
  reading.problems.push_back({field.key, value.written, fault->rule, fault->nearest});
}

void add_unknown_key(const std::string& key, const std::string& written, const char* rule, Reading& reading) {
  const std::string meant = suggested_key(key);
  reading.meant.insert(meant.substr(0, meant.find('=')));
  reading.problems.push_back({key, written, rule, meant});
}

std::string nearest_section(const std::string& name) {
  Strings names;
  for (const auto& section : sections()) names.push_back(section.name);
  return nearest(name, names);
}

std::string in_brackets(const std::string& section) { return cat("[", section, "]"); }

void add_unknown_section(const std::string& name, const TomlTable& table, Reading& reading) {
  const std::string meant = nearest_section(name);
  for (const auto& [leaf, value] : table) reading.meant.insert(cat(meant, ".", leaf));
  reading.problems.push_back(
      {in_brackets(name), "", "is not a known section", meant.empty() ? "" : in_brackets(meant)});
}

void read_section(const std::string& section, const TomlTable& table, Reading& reading) {
  for (const auto& [leaf, value] : table) {
    const std::string key = section + "." + leaf;
    reading.lines[key] = value.line;
    if (const Field* field = find_field(key)) {
      give(*field, value, reading);
    } else {
      add_unknown_key(key, value.written, "is not a known key", reading);
    }
  }
}

// Returns true for a section that braid does not have, but with keys of another program. Each key is then reported with
// braid's name for it.
bool is_section_of_peer(const std::string& name, const TomlTable& table) {
  return std::ranges::any_of(table, [&](const auto& entry) {
    const std::string known = known_as(cat(name, ".", entry.first));
    return !known.empty() && !known.ends_with("." + entry.first);
  });
}

void read_document(const TomlTable& root, Reading& reading) {
  for (const auto& [name, value] : root) {
    const auto* table = value.as<TomlTable>();
    reading.lines[table ? in_brackets(name) : name] = value.line;
    if (table && (is_section(name) || is_section_of_peer(name, *table))) {
      read_section(name, *table, reading);
    } else if (table) {
      add_unknown_section(name, *table, reading);
    } else if (is_section(name)) {
      reading.problems.push_back({name, value.written, cat("must be a section, written [", name, "]"), ""});
    } else {
      add_unknown_key(name, value.written, "must be in a section", reading);
    }
  }
}

void add_formless(const std::string& word, const std::string& meant, int64_t number, Reading& reading) {
  reading.problems.push_back({"override", toml_text(word), "must have the form section.key=value", meant});
  reading.overrides["override"] = number;
}

void read_override(const std::string& word, int64_t number, Reading& reading) {
  const auto equals = word.find('=');
  const std::string key = trimmed(word.substr(0, equals));
  if (equals == std::string::npos || key.empty()) {
    add_formless(word, suggested_override(key, ""), number, reading);
    return;
  }
  reading.lines.erase(key);
  reading.overrides[key] = number;
  const std::string text = trimmed(word.substr(equals + 1));
  const Field* field = find_field(key);
  if (!field) {
    add_unknown_key(key, text, "is not a known key", reading);
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

void read_all(const TomlDocument& document, const std::vector<std::string>& overrides, Reading& reading) {
  read_document(document.root, reading);
  const auto is_apart = [&](size_t i) {  // a key whose value is the next argument: train.steps 5
    if (i + 1 >= overrides.size() || (overrides[i] + overrides[i + 1]).find('=') != std::string::npos) return false;
    return !known_as(overrides[i]).empty() && !find_field(overrides[i + 1]);
  };
  for (size_t i = 0; i < overrides.size(); ++i) {
    const auto number = static_cast<int64_t>(i) + 1;
    if (is_apart(i)) {
      const std::string meant = suggested_override(overrides[i], overrides[i + 1]);
      add_formless(cat(overrides[i], " ", overrides[i + 1]), meant, number, reading);
      ++i;
    } else {
      read_override(overrides[i], number, reading);
    }
  }
}

bool gives_whole_model(const Reading& reading) {
  return std::all_of(fields().begin(), fields().end(), [&](const Field& field) {
    return section_of(field) != "model" || reading.given.contains(field.key);
  });
}

// Returns a problem of the key that names the weights.
Problem weights_problem(const TrainSpec& train, const std::string& rule) {
  const bool resumes = !train.resume.empty();
  return {resumes ? "train.resume" : "train.init", toml_text(resumes ? train.resume : train.init), rule, ""};
}

// Returns the model of the weights that train.resume names, or else train.init.
ModelSpec model_of_weights(const RunSpec& spec, const ParseOptions& options, std::vector<Problem>& faults) {
  const TrainSpec& train = spec.train;
  try {
    const std::string config = train.init + "/config.json";
    if (train.resume.empty() && path_kind(config) != PathKind::Nothing) return model::read_hf_config(config, faults);
    if (options.model_of_checkpoint) return options.model_of_checkpoint(train, faults);
  } catch (const IoError& error) {
    faults.push_back(weights_problem(train, error.what()));
  }
  return {};
}

// Takes the tokenizer of the weights if data.tokenizer is not given. Marks data.tokenizer unread, so its rule with
// model.vocab is not checked: the data may be tokens already.
void take_tokenizer_of_weights(const Reading& asking, const ParseOptions& options, Reading& reading) {
  const TrainSpec& train = asking.spec.train;
  if ((train.init.empty() && train.resume.empty()) || asking.given.contains("data.tokenizer")) return;
  reading.unread.insert("data.tokenizer");
  if (!options.tokenizer_of_weights) return;
  try {
    const std::string found = options.tokenizer_of_weights(asking.spec);
    if (!found.empty()) reading.spec.data.tokenizer = found;
  } catch (const IoError& error) {
    reading.problems.push_back(weights_problem(train, error.what()));
  }
}

// Reads the file and the overrides on top of the model that they name. If that model cannot be read, marks the keys of
// [model] that were not given unread, so no rule with them is checked.
Reading read_on_model(const TomlDocument& document, const std::vector<std::string>& overrides,
                      const ParseOptions& options) {
  Reading asking, reading;
  read_all(document, overrides, asking);
  std::vector<Problem> faults;
  const ModelSpec& asked = asking.spec.model;
  const bool of_weights = asked.preset.empty() && asked.config.empty() && !asking.spec.train.init.empty();
  if (!of_weights) reading.spec.model = described_model(asked, faults);
  if (of_weights && !gives_whole_model(asking)) reading.spec.model = model_of_weights(asking.spec, options, faults);
  take_tokenizer_of_weights(asking, options, reading);
  read_all(document, overrides, reading);
  reading.spec.model.preset.clear();
  reading.spec.model.config.clear();
  if (faults.empty()) return reading;
  reading.problems.insert(reading.problems.end(), faults.begin(), faults.end());
  for (const auto& field : fields()) {
    if (section_of(field) == "model" && !reading.given.contains(field.key)) reading.unread.insert(field.key);
  }
  return reading;
}

// Gives each problem its place, and sorts them: problems without a key, problems by line of the file, problems by
// number of the override, then problems of keys that were not given.
void put_in_order(const Reading& reading, const std::string& origin, std::vector<Problem>& problems) {
  using Rank = std::pair<int, int64_t>;
  std::vector<std::pair<Rank, Problem>> ranked;
  for (Problem& problem : problems) {
    const auto line = reading.lines.find(problem.key), word = reading.overrides.find(problem.key);
    const Field* field = find_field(problem.key);
    Rank rank{0, 0};
    if (line != reading.lines.end()) {
      problem.place = cat(origin, ":", line->second);
      rank = {1, line->second};
    } else if (word != reading.overrides.end()) {
      rank = {2, word->second};
    } else if (field) {
      rank = {3, field - fields().data()};
    }
    ranked.emplace_back(rank, std::move(problem));
  }
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::transform(ranked.begin(), ranked.end(), problems.begin(), [](auto& each) { return std::move(each.second); });
}

RunSpec checked(const TomlDocument& document, const std::string& origin, const std::vector<std::string>& overrides,
                const ParseOptions& options) {
  Reading reading = read_on_model(document, overrides, options);
  reading.problems.insert(reading.problems.begin(), document.problems.begin(), document.problems.end());
  if (document.problems.empty()) {
    // A misspelt key is one problem. The right key, which is therefore missing, must not be reported too.
    for (const auto& key : reading.meant) {
      if (!reading.given.contains(key)) reading.unread.insert(key);
    }
    for (auto& problem : problems(reading.spec, options.limits, reading.unread, options.open))
      reading.problems.push_back(std::move(problem));
  } else {
    for (const auto& field : fields()) {
      if (auto problem = broken_rule(field, reading.spec)) reading.problems.push_back(std::move(*problem));
    }
  }
  put_in_order(reading, origin, reading.problems);
  if (!reading.problems.empty()) throw ConfigError(std::move(reading.problems));
  return with_parts(std::move(reading.spec));
}

}  // namespace

RunSpec parse_run(const std::string& toml_text, const std::string& origin, const std::vector<std::string>& overrides,
                  const ParseOptions& options) {
  return checked(toml_document(toml_text, origin), origin, overrides, options);
}

RunSpec read_run(const std::string& path, const std::vector<std::string>& overrides, const ParseOptions& options) {
  std::string text;
  try {
    text = named_content(path, kMostTomlBytes);
  } catch (const IoError& error) {
    return checked({{}, {{"", "", error.what(), ""}}}, path, overrides, options);
  }
  return parse_run(text, path, overrides, options);
}

}  // namespace braid::spec
