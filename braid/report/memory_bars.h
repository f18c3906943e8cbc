// Memory of every rank as stacked bars in HTML, one scale for all.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace braid::report {

struct MemoryBars {
  std::vector<std::pair<std::string, std::vector<double>>> categories;  // peak bytes of each rank
  std::vector<double> totals;  // bytes of each rank, the most in use at once; marked on the bars
};

inline constexpr size_t kMostBars = 64;

// Empty when there is nothing to show. Of more than kMostBars ranks, those with the largest bars, in rank order.
std::string memory_bars(const MemoryBars& memory);

}  // namespace braid::report
