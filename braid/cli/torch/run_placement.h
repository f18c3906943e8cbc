// The placement of a training run's ranks on the nodes of its job.
#pragma once

#include <string>

#include "braid/cli/torch/job.h"
#include "braid/spec/run_spec.h"

namespace braid::cli {

// Returns the contribution of a run to its job. REQUIRES: the run's placement and mesh fit the nodes (parse_run).
JobWork work_of_run(const JobPlace& place, const RunSpec& spec);

// Returns "h0 has rank 0, 1; h1 has rank 2, 3; inside a host tensor; across hosts data; two levels along data".
std::string placement_text(const Job& job, const RunSpec& spec);

}  // namespace braid::cli
