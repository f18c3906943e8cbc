// What braid simulate was asked for, read from its words. It does not simulate.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/cli/commands.h"
#include "braid/schedule/walk.h"
#include "braid/sim/cost_model.h"

namespace braid {

enum class SimulateOutput { Text, Json, Csv };

struct SimulateRequest {
  std::vector<std::string> names;  // schedules, at least one
  int ranks = 0;
  int microbatches = 0;
  CostModel cost;
  SendMode sends = SendMode::Buffered;
  SimulateOutput output = SimulateOutput::Text;
  std::optional<int> width;  // of the grid; 0: no limit
  std::string svg;           // file to draw into; empty: none
};

// Empty when --help was asked for and printed. Throws ConfigError with everything that is wrong.
std::optional<SimulateRequest> simulate_request(const Words& words);

}  // namespace braid
