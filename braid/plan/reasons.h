// Reasons in sentences: why a layout was chosen over the best of those that differ in one thing, and why no layout
// fits.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/plan/search.h"

namespace braid::plan {

// Explains in sentences why no layout fits: the layout that needs least memory, how much that is, and a number of nodes
// on which some layout fits. The number of nodes is doubled until some layout fits, and smaller numbers are then tried.
// If braid can train no layout, or no mesh takes all devices, it says that and why.
std::string shortage(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options);

// Sets `why` of each layout, to sentences like "pipe 8 rather than 4, which would need 91.2 GiB on rank 0 of pipe, most
// of it activations; zero 1 rather than 0, which would take 4.0 % longer, most of it data. 12.0 % of the step goes to
// pipeline." The number of data ranks is not mentioned, because it follows from pipe and tensor.
void add_reasons(const SearchRequest& request, std::vector<PlannedLayout>& layouts, Predictor& predictor);

}  // namespace braid::plan
