// Explains why no layout fits: the scarce resource, and the number of nodes that would suffice.
#pragma once

#include <string>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/plan/search.h"

namespace braid::plan {

// In sentences: the layout that comes nearest, what of it is too much, and the smallest number of nodes, doubled until
// there is one, on which some layout fits. Or that no mesh takes all devices, and why.
std::string shortage(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options);

}  // namespace braid::plan
