// The median of values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace braid {

// Returns the median; for an even number of values, the upper of the middle two. REQUIRES: `values` is not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace braid
