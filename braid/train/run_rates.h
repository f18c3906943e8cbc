// Measures the compute rates and links of a run's ranks, where they are.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the number of hosts of ranks; an empty list means one.
int num_hosts(const std::vector<int>& host_of_rank);

// Returns true if the rank computes: on each host, the first ranks do, as many as it has devices.
bool computes(const std::vector<int>& host_of_rank, int rank, int per_node);

// The hosts of the run as predict_run() sees them: its model's block (kernel_probe.h) and
// copies, on as many ranks of each host at the same time as it has cores, with the threads that they have; and one pair
// of ranks in a host and one across; a link that no two ranks have is {}. About half a second, or some rounds of large
// blocks; no random numbers. RunError on all ranks where one has no memory for it. Collective; rank 0's is whole.
plan::Cluster measured_rates(const RunSpec& spec, std::vector<int> host_of_rank, Communicator& world);

}  // namespace braid::train
