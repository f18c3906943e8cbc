// Predictions of a run beside its measurements.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"

namespace braid::report {

struct PredictedRow {
  std::string name;                             // "step", "peak memory"
  std::string predicted, measured, difference;  // with their units; the prediction less the measurement
};

// Step and bubble are medians of the last logged steps, the first left out; memory is that of the fullest rank, of all
// and by category. Empty where nothing was predicted, or nothing has been measured since.
std::vector<PredictedRow> predicted_rows(const RunRecord& record);

// As lines of text, with their heads.
std::string predicted_table(const std::vector<PredictedRow>& rows);

// As a section of a run's page; empty without rows.
std::string predicted_html(const std::vector<PredictedRow>& rows);

}  // namespace braid::report
