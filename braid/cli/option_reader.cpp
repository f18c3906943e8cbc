// Reading numbers with from_chars: no locale, no leading blanks.
#include "braid/cli/option_reader.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "braid/base/text.h"

namespace braid {

int OptionReader::natural(const char* key, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least) return value;
  add({key, text, cat("must be a whole number of at least ", least), std::to_string(least)});
  return least;
}

void OptionReader::amount(const char* key, const std::string& text, const char* what, double& value) {
  if (text.empty()) return;
  double read = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), read);
  const bool number = error == std::errc{} && end == text.data() + text.size();
  if (number && std::isfinite(read) && read >= 0) {
    value = read;
  } else {
    add({key, text, cat("must be ", what, ", a number of at least 0"), "0"});
  }
}

void OptionReader::add_new(const Problem& problem) {
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) problems_.push_back(problem);
}

void OptionReader::throw_problems() {
  if (!problems_.empty()) throw ConfigError(std::move(problems_));
}

}  // namespace braid
