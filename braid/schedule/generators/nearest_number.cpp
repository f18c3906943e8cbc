// A search outwards.
#include "braid/schedule/generators/nearest_number.h"

#include <algorithm>

namespace braid::schedule {

std::string nearest_number(int value, NumberRange range, const std::function<bool(int)>& valid) {
  const auto [low, high] = range;
  const int start = std::clamp(value, low, std::max(low, high));
  for (int away = 0; start - away >= low || start + away <= high; ++away) {
    for (int number : {start + away, start - away}) {
      if (number >= low && number <= high && valid(number)) return std::to_string(number);
    }
  }
  return "";
}

}  // namespace braid::schedule
