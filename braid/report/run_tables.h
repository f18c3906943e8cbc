// HTML tables of a run's page: kinds of parallelism, memory of ranks, configuration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

// Memory of every rank as stacked bars in HTML, one scale for all.
struct MemoryBars {
  std::vector<std::pair<std::string, std::vector<double>>> categories;  // peak bytes of each rank
  std::vector<double> totals;  // bytes of each rank, the most in use at once; marked on the bars
};

inline constexpr size_t kMostBars = 64;

// Empty when there is nothing to show. Of more than kMostBars ranks, those with the largest bars, in rank order.
std::string memory_bars(const MemoryBars& memory);

// A run's configuration as HTML tables, what differs from the defaults marked. It judges no values.

// Returns one table for each section of `toml`, in its order, with unknown keys and sections too. Returns the text
// itself if it is no TOML.
std::string config_tables(const std::string& toml);

// HTML; empty without ways. A narrow screen shows a block of named lines for each way (page_style.h).
std::string compared_table(const std::vector<ComparedWay>& ways);

}  // namespace braid::report
