// The output of braid plan: a table with reasons, a JSON object.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/plan/search.h"

namespace braid::cli {

// Reasons why braid cannot train a layout. A search proposes only layouts without any, --fixed may name others.
std::vector<std::string> not_in_braid(const RunSpec& spec);
// Sentences about predictions that are not of braid on measured devices, a line each; empty where they are.
std::string rates_note(const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_text(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_json(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);

}  // namespace braid::cli
