// The output of braid plan: a table with reasons, or a JSON object.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/plan/search.h"

namespace braid::cli {

// Returns the reasons why braid cannot train a layout. Layouts from a search have none; a layout named by --fixed may
// have some.
std::vector<std::string> not_in_braid(const RunSpec& spec);
// Returns a line for each reason why predictions are not those of braid on measured devices: formulas of another
// program, rates from data sheets. Empty if there is no such reason.
std::string rates_note(const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_text(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_json(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);

}  // namespace braid::cli
