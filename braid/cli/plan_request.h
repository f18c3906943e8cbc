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
  RunSpec run;  // the run, with its vocabulary resolved
  plan::Cluster cluster;
  PlanTarget what = PlanTarget::Best;
  PlanOutput output = PlanOutput::Text;
  plan::FormulaSet formulas = plan::FormulaSet::Braid;
  int top = 5;
  int tried = 0;                       // number of layouts to run for some steps
  std::set<std::string> pinned;        // pinned keys
  std::vector<std::string> pin_words;  // the pins as overrides: "mesh.tensor=8"
  std::string svg;                     // file for a picture of the step of a fixed layout; empty: none
  std::string calibrate;  // file to write the measurements of this host into, and do nothing else; empty: none
};

// Returns the request, or nullopt if --help was printed. Throws ConfigError with everything that is wrong.
std::optional<PlanRequest> plan_request(const Words& words);

// Sets the vocabulary of a run with the byte tokenizer that names none.
void take_vocab_of_bytes(RunSpec& run);

}  // namespace braid::cli
