// Data and model parallelism side by side, as a table of a run's page.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

// A run's configuration as HTML tables, what differs from the defaults marked. It judges no values.

// Returns one table for each section of `toml`, in its order, with unknown keys and sections too. Returns the text
// itself if it is no TOML.
std::string config_tables(const std::string& toml);

// HTML; empty without ways. A narrow screen shows a block of named lines for each way (page_style.h).
std::string compared_table(const std::vector<ComparedWay>& ways);

}  // namespace braid::report
