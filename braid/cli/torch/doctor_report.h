// The report of braid doctor, as text and as JSON.
#pragma once

#include <string>

#include "braid/train/measure_job.h"

namespace braid::cli {

std::string doctor_text(const train::MeasuredJob& job);
std::string doctor_json(const train::MeasuredJob& job);

}  // namespace braid::cli
