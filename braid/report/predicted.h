// The predictions of a run compared with its measurements.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

struct PredictedRow {
  std::string name;  // "step", "peak memory"
  // Texts with units. `difference` is the prediction minus the measurement.
  std::string predicted, measured, difference;
};

// Returns the rows of a record. Step and bubble are medians of the last logged steps, without the first. Memory is that
// of the fullest rank, in total and by category. Empty if nothing was predicted, or nothing has been measured since.
std::vector<PredictedRow> predicted_rows(const RunRecord& record);

// Returns the rows as lines of text, with column heads.
std::string predicted_table(const std::vector<PredictedRow>& rows);

// Returns the rows as a section of a run's page; empty without rows.
std::string predicted_html(const std::vector<PredictedRow>& rows);

}  // namespace braid::report
