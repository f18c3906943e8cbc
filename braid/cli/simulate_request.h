// The request to braid simulate, read from its arguments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/cli/commands.h"
#include "braid/schedule/cost_model.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/walk.h"

namespace braid::cli {

enum class SimulateOutput { Text, Summary, Json, Csv };  // Text is a picture and the summary

// The source of the cost model's times.
enum class TimesOf {
  Stage,  // times are per stage
  Rank,   // times are per rank, over all its stages: schedules with different numbers of stages then run the same model
};

struct SimulateRequest {
  std::vector<Schedule> schedules;  // at least one; generated, but not validated (validate.h)
  schedule::CostModel cost;
  TimesOf times_of = TimesOf::Stage;
  schedule::SendMode sends = schedule::SendMode::Buffered;
  SimulateOutput output = SimulateOutput::Text;
  std::optional<int> width;  // columns of the grid; 0: no limit
  std::string svg;           // file to draw into; empty: none
  std::string trace;         // file for a Chrome trace; empty: none
};

// Returns the request, or nullopt if --help was printed. Throws ConfigError with everything that is wrong.
std::optional<SimulateRequest> simulate_request(const Words& words);

}  // namespace braid::cli
