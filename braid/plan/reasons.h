// Reasons in sentences: why a layout is better than layouts that differ in one value, and why no layout fits.
#pragma once

#include <string>
#include <vector>

#include "braid/plan/cluster.h"
#include "braid/plan/predict_run.h"
#include "braid/plan/search.h"

namespace braid::plan {

// Explains why no layout fits: names the layout that needs least memory, its memory, and a number of nodes on which
// some layout fits. Doubles the number of nodes until some layout fits, and then tries smaller numbers. If braid can
// train no layout, or no mesh uses all devices, says that and why.
std::string shortage(const SearchRequest& request, const Cluster& cluster, const PredictOptions& options);

// Sets `why` of each layout, to sentences like "pipe 8 rather than 4, which would need 91.2 GiB on rank 0 of pipe, most
// of it activations; zero 1 rather than 0, which would take 4.0 % longer, most of it data. 12.0 % of the step goes to
// pipeline." The number of data ranks is not mentioned, because it follows from pipe and tensor.
void add_reasons(const SearchRequest& request, std::vector<PlannedLayout>& layouts, Predictor& predictor);

}  // namespace braid::plan
