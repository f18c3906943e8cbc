// Reads numbers with from_chars, which ignores the locale and accepts no leading blanks.
#include "braid/cli/option_reader.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "braid/base/text.h"

namespace braid::cli {

int OptionReader::natural(const char* key, const std::string& text, int least) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc{} && end == text.data() + text.size() && value >= least) return value;
  const int most = std::numeric_limits<int>::max();
  const bool too_large = error == std::errc::result_out_of_range && !text.starts_with('-');
  add({key, text, too_large ? cat("must be at most ", most) : cat("must be a whole number of at least ", least),
       std::to_string(too_large ? most : least)});
  return least;
}

void OptionReader::read(const char* key, const std::string& text, const Amount& amount, double& value) {
  if (text.empty()) return;
  double found = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), found);
  const bool number = error == std::errc{} && end == text.data() + text.size();
  if (number && found >= 0 && found <= amount.most) {
    value = found;
  } else {
    const std::string most = exact(amount.most);
    std::string close;
    if (number && found < 0) close = "0";
    if (number && found > amount.most) close = most;
    add({key, text, cat("must be ", amount.what, ", a number from 0 to ", most), close});
  }
}

void OptionReader::add_new(const Problem& problem) {
  if (std::find(problems_.begin(), problems_.end(), problem) == problems_.end()) problems_.push_back(problem);
}

void OptionReader::throw_problems() {
  if (!problems_.empty()) throw ConfigError(std::move(problems_));
}

}  // namespace braid::cli
