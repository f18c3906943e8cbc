// The rules for options. Numbers are read with from_chars, which ignores the locale and accepts no leading blanks.
#include "braid/cli/option_rules.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/spec/suggested_key.h"

namespace braid::cli {

void add_document_options(CLI::App& app, std::vector<std::string>& include, std::string& text_field,
                          tokenize::BadLines& bad_lines) {
  app.add_option("--include", include, "a file name pattern inside folders, \"*.txt\"; repeatable")
      ->allow_extra_args(false);
  app.add_option("--text-field", text_field, "of a line of .jsonl")->capture_default_str();
  app.add_flag_callback(
      "--skip-bad-lines", [&bad_lines] { bad_lines = tokenize::BadLines::Skipped; },
      "pass over lines of .jsonl without the text field, and count them");
}

namespace {

// Returns the number in the word; nothing unless the whole word is a number.
template <class Number>
std::optional<Number> number_in(const std::string& word) {
  Number value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size()) return std::nullopt;
  return value;
}

std::string with_nearest(const std::string& rule, const std::string& nearest) {
  return nearest.empty() ? rule : cat(rule, "; nearest valid is ", nearest);
}

// Returns a validator without a description. CLI11 would append a description to the name of the option's type.
CLI::Validator rule(std::function<std::string(std::string&)> broken) { return {std::move(broken), ""}; }

}  // namespace

CLI::Validator whole_number(int64_t least, int64_t most) {
  return rule([least, most](std::string& word) -> std::string {
    const auto value = number_in<int64_t>(word);
    if (value && *value >= least && *value <= most) return "";
    const bool bounded = most < std::numeric_limits<int32_t>::max() || (value && *value > most);
    const std::string range = bounded ? cat("from ", least, " to ", most) : cat("of at least ", least);
    return with_nearest("must be a whole number " + range, value ? cat(std::clamp(*value, least, most)) : "");
  });
}

CLI::Validator natural_number() {
  return rule([](std::string& word) -> std::string {
    return number_in<uint64_t>(word) ? ""
                                     : cat("must be a whole number from 0 to ", std::numeric_limits<uint64_t>::max());
  });
}

CLI::Validator not_negative() {
  return rule([](std::string& word) -> std::string {
    const auto value = number_in<double>(word);
    if (value && std::isfinite(*value) && *value >= 0) return "";
    return with_nearest("must be a finite number of at least 0", value && *value < 0 ? "0" : "");
  });
}

CLI::Validator share() {
  return rule([](std::string& word) -> std::string {
    const auto value = number_in<double>(word);
    if (value && *value > 0 && *value <= 1) return "";
    return with_nearest("must be a number above 0 and at most 1", value && *value > 1 ? "1" : "");
  });
}

CLI::Validator not_empty() {
  return rule([](std::string& word) -> std::string { return word.empty() ? "must not be empty" : ""; });
}

CLI::Validator no_override() {
  return rule([](std::string& word) -> std::string {
    const size_t equals = word.find('=');
    const bool is_key = equals != word.npos && !spec::known_as(word.substr(0, equals)).empty();
    if (!is_key || path_kind(word) != PathKind::Nothing) return "";
    return "is an override, and the run's file, such as run.toml, must stand before it; braid config --starter prints "
           "one";
  });
}

CLI::Validator output_name() {
  return rule([](std::string& word) -> std::string {
    return word == "-" ? "must name a file or folder; ./- names one that is called so" : "";
  });
}

CLI::Validator one_of(std::vector<std::string> words) {
  return rule([words = std::move(words)](std::string& word) -> std::string {
    if (std::find(words.begin(), words.end(), word) != words.end()) return "";
    return with_nearest("must be one of " + joined(words), nearest(word, words));
  });
}

}  // namespace braid::cli
