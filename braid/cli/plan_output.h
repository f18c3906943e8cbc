// The output of braid plan: a table with reasons, a JSON object.
#pragma once

#include <string>

#include "braid/cluster/cluster.h"
#include "braid/predict/formula_set.h"
#include "braid/search/plan.h"

namespace braid {

// Sentences about predictions that are not of braid on measured devices, a line each; empty where they are.
std::string rates_note(const Cluster& cluster, FormulaSet formulas);
std::string plan_text(const Plan& plan, const Cluster& cluster, FormulaSet formulas);
std::string plan_json(const Plan& plan, const Cluster& cluster, FormulaSet formulas);

}  // namespace braid
