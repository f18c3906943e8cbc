// HTML tables for a run's page: kinds of parallelism, memory of ranks, configuration.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

// The memory of every rank, shown as stacked HTML bars on one scale.
struct MemoryBars {
  std::vector<std::pair<std::string, std::vector<double>>> categories;  // peak bytes of each rank
  std::vector<double> totals;  // largest bytes in use at once, by rank; marked on the bars
};

inline constexpr size_t kMostBars = 64;

// Returns the bars; empty if there is nothing to show. Of more than kMostBars ranks, shows those with the largest bars,
// in rank order.
std::string memory_bars(const MemoryBars& memory);

// Returns a run's configuration as one HTML table for each section of `toml`, in its order, including unknown keys and
// sections. Values that differ from the defaults are marked; values are not validated. Returns the text itself if it is
// not TOML.
std::string config_tables(const std::string& toml);

// Returns a table in HTML; empty if there are no ways. A narrow screen shows a block of named lines for each way
// (page_style.h).
std::string compared_table(const std::vector<ComparedWay>& ways);

}  // namespace braid::report
