// The request to braid plan, read from its arguments.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "braid/cli/commands.h"
#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/spec/run_spec.h"

namespace braid::cli {

enum class PlanTarget { Best, Fixed, Comparison };
enum class PlanOutput { Text, Json };

struct PlanRequest {
  RunSpec run;  // its vocabulary is known
  plan::Cluster cluster;
  PlanTarget what = PlanTarget::Best;
  PlanOutput output = PlanOutput::Text;
  plan::FormulaSet formulas = plan::FormulaSet::Braid;
  int top = 5;
  int tried = 0;                       // layouts that are run for some steps
  std::set<std::string> pinned;        // keys
  std::vector<std::string> pin_words;  // overrides that pins are: "mesh.tensor=8"
  std::string calibrate;               // file to write what this host has into, and nothing else; empty: none
};

// Empty when --help was asked for and printed. Throws ConfigError with everything that is wrong.
std::optional<PlanRequest> plan_request(const Words& words);

}  // namespace braid::cli
