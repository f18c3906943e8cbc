// The valid number nearest to one that is not.
#pragma once

#include <functional>
#include <string>

namespace braid::schedule {

struct NumberRange {
  int low, high;  // both inside
};

// The number in `range` nearest to `value` for which `valid` holds, the larger of two; "" when there is none.
std::string nearest_number(int value, NumberRange range, const std::function<bool(int)>& valid);

}  // namespace braid::schedule
