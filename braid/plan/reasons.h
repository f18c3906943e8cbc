// Reasons in sentences: why a layout was chosen, beside the best of those that differ in one thing, and why none fits.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/plan/search.h"

namespace braid::plan {

// Explains why no layout fits: the scarce resource, and the number of nodes that would suffice.

// In sentences: the layout that comes nearest, what of it is too much, and the smallest number of nodes, doubled until
// there is one, on which some layout fits. Or that no mesh takes all devices, and why.
std::string shortage(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options);

// Into `why` of each, like "pipe 8 rather than 4, which would need 91.2 GiB on rank 0 of pipe, most of it activations;
// zero 1 rather than 0, which would take 4.0 % longer, most of it data. 12.0 % of the step goes to pipeline." What data
// ranks there are follows from pipe and tensor.
void add_reasons(const SearchRequest& request, std::vector<PlannedLayout>& layouts, Predictor& foresight);

}  // namespace braid::plan
