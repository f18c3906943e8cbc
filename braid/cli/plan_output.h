// The output of braid plan: a table with reasons, a JSON object.
#pragma once

#include <string>

#include "braid/plan/cluster.h"
#include "braid/plan/formula_set.h"
#include "braid/plan/search.h"

namespace braid::cli {

// Sentences about predictions that are not of braid on measured devices, a line each; empty where they are.
std::string rates_note(const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_text(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);
std::string plan_json(const plan::Plan& plan, const plan::Cluster& cluster, plan::FormulaSet formulas);

}  // namespace braid::cli
