// Data and model parallelism side by side, as a table of a run's page.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

// HTML; empty without ways. A narrow screen shows a block of named lines for each way (page_style.h).
std::string compared_table(const std::vector<ComparedWay>& ways);

}  // namespace braid::report
