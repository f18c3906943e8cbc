// Reads a command's words. CLI11 stops at the first fault, so each option is checked again to find the others.
#include "braid/cli/arguments.h"

#include <cmath>
#include <cstdlib>

#include "braid/base/text.h"
#include "braid/cli/command_page.h"
#include "braid/cli/option_rules.h"
#include "braid/spec/peer_names.h"
#include "braid/spec/suggested_key.h"

namespace braid::cli {
namespace {

constexpr const char* kOverrides = "OVERRIDES";
constexpr size_t kMostOfWord = 100;  // bytes shown of each of several words

std::string shown_name(const CLI::Option& option) {
  return option.get_option_text().empty() ? option.get_name() : option.get_option_text();
}

// Returns the rule of a value that CLI11 could not convert.
std::string rule_of_type(const CLI::Option& option) {
  const std::string type = option.get_type_name(), value = joined(option.results());
  const bool is_whole = value.find_first_not_of("+-0123456789") == value.npos;
  if (type == "INT") return is_whole ? "is too large" : "must be a whole number";
  return "must be a number";
}

// Returns the rule broken by values that CLI11 converts and no option takes: "nan" and "inf".
std::string rule_of_kind(const CLI::Option& option) {
  for (const std::string& word : option.results()) {
    if (option.get_type_name() == "FLOAT" && !std::isfinite(std::strtod(word.c_str(), nullptr)))
      return "must be a finite number";
  }
  return "";
}

// Returns the rule that the option's value breaks; empty if it breaks none.
std::string broken_rule(CLI::Option& option) {
  try {
    option.run_callback();
  } catch (const CLI::ValidationError& error) {
    return std::string(error.what()).substr(option.get_name().size() + 2);  // text after "NAME: "
  } catch (const CLI::ConversionError&) {
    return rule_of_type(option);
  }
  return rule_of_kind(option);
}

bool is_given_too_often(const CLI::Option& option) {
  return option.get_multi_option_policy() == CLI::MultiOptionPolicy::Throw &&
         static_cast<int>(option.results().size()) > option.get_items_expected_max();
}

// Returns the fault of an option. Too many values are reported before a broken rule: CLI11 checks each value, and the
// message would attribute the fault of one value to all of them.
std::optional<Problem> fault_of(CLI::Option& option) {
  const std::vector<std::string>& words = option.results();
  if (is_given_too_often(option)) {
    std::vector<std::string> shown;
    for (const std::string& word : words) shown.push_back(printable(word, kMostOfWord));
    const std::string times = cat(words.size(), " times: ", joined(shown, " and "));
    return Problem{shown_name(option), "", "must be given once, and is given " + times, ""};
  }
  std::string rule = broken_rule(option);
  if (rule.empty()) return std::nullopt;
  return Problem{shown_name(option), joined(words, " "), std::move(rule), ""};
}

std::vector<Problem> faulty_options(CLI::App& app) {
  std::vector<Problem> found;
  for (CLI::Option* option : app.get_options()) {
    const bool is_empty = option->get_required() && joined(option->results()).empty();
    if (option->count() == 0 || is_empty) {
      if (option->get_required())
        found.push_back({shown_name(*option), "", "is needed; " + option->get_description(), ""});
      continue;
    }
    if (auto fault = fault_of(*option)) found.push_back(std::move(*fault));
  }
  return found;
}

// Returns the value given to `word`, after an equals sign or as the next word; empty if there is none.
std::string value_behind(const std::string& word, const std::vector<std::string>& list) {
  if (const size_t equals = word.find('='); equals != word.npos) return word.substr(equals + 1);
  const auto at = std::ranges::find(list, word);
  const bool is_last = at == list.end() || at + 1 == list.end();
  return is_last || (at + 1)->starts_with('-') || (at + 1)->find('=') != word.npos ? "" : *(at + 1);
}

// Returns the problem of an unknown option. If it is a key of the configuration and the command takes overrides, the
// problem suggests the override.
Problem unknown_option(const CLI::App& app, const std::string& word, const std::vector<std::string>& list) {
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_positional()) known.push_back(option->get_name());
  }
  const std::string name = word.substr(0, word.find('=')), rule = "is not an option of " + app.get_name();
  const bool takes_keys = app.get_option_no_throw(kOverrides) != nullptr;
  const std::string meant = takes_keys ? spec::suggested_override(name, value_behind(word, list)) : "";
  if (meant.empty()) return {name, "", rule, spec::nearest_word(name, known)};
  return {name, "", rule + ", which takes keys of the configuration without dashes", meant};
}

// Returns the problems of surplus words. If there are unknown options, other words are not reported: they may be values
// of these options.
std::vector<Problem> unknown_words(const CLI::App& app, const std::vector<std::string>& list) {
  std::vector<Problem> options, others;
  for (const std::string& word : app.remaining()) {
    if (word.size() > 1 && word[0] == '-') {
      options.push_back(unknown_option(app, word, list));
    } else {
      others.push_back({"", word, "is one word too many for " + app.get_name(), ""});
    }
  }
  return options.empty() ? others : options;
}

// Returns the problem of a last word that is an option without its value.
std::optional<Problem> missing_value(const CLI::App& app, const std::string& last) {
  const CLI::Option* option = last.starts_with('-') ? app.get_option_no_throw(last) : nullptr;
  if (!option || option->get_items_expected_min() == 0) return std::nullopt;
  return Problem{last, "", "needs a value behind it: " + option->get_description(), ""};
}

}  // namespace

std::optional<int> parse_words(CLI::App& app, const Words& words) {
  if (words.on_options) {
    words.on_options(app);
    return 0;
  }
  const bool takes_extras = app.get_allow_extras();
  app.allow_extras();
  std::optional<Problem> cut_off;
  std::string said;
  try {
    std::vector<std::string> reversed(words.list.rbegin(), words.list.rend());
    app.parse(reversed);
  } catch (const CLI::Success&) {  // --help, handled below
  } catch (const CLI::ParseError& error) {
    said = error.what();
    if (dynamic_cast<const CLI::ArgumentMismatch*>(&error)) cut_off = missing_value(app, words.list.back());
  }
  if (app.get_help_ptr()->count() > 0) {
    std::cout << help_text(page_of(app));
    return 0;
  }
  std::vector<Problem> found = takes_extras ? std::vector<Problem>() : unknown_words(app, words.list);
  if (cut_off) found.push_back(*cut_off);
  for (Problem& problem : faulty_options(app)) {
    if (!cut_off || problem.key != cut_off->key) found.push_back(std::move(problem));
  }
  if (found.empty() && !said.empty()) found.push_back({"", "", said, ""});
  if (!found.empty()) throw ConfigError(std::move(found));
  return std::nullopt;
}

CLI::Option* add_run_file(CLI::App& app, std::string& path) {
  return app.add_option("FILE", path, "the run as TOML; braid config --starter prints one")->check(no_override());
}

void add_overrides(CLI::App& app, std::vector<std::string>& overrides) {
  app.add_option(kOverrides, overrides, "overrides of keys of the file")->option_text(kOverride);
}

}  // namespace braid::cli
