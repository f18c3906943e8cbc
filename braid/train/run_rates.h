// Measures the compute rates and the links of a run's ranks on their hosts.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/plan/cluster.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Returns the number of hosts; an empty list means one.
int num_hosts(const std::vector<int>& host_of_rank);

// Returns true if the rank is among the first `per_node` ranks of its host. These take part in measurements; `per_node`
// is the number of devices of a host.
bool computes(const std::vector<int>& host_of_rank, int rank, int per_node);

// Measures the hosts of the run and returns them for predict_run():
//
//   * the rates of the model's block (kernel_probe.h) and of copies, on as many ranks of each host at the same time as
//     it has cores, or devices, with the threads that they have;
//   * the link of one pair of ranks in a host, and of one across hosts. If no two ranks share a host, both are the
//     latter. If all ranks are on one host, the latter is {}, and hosts of parameter servers do not count as nodes;
//   * the first folder of memory.paths or else train.out, if optimizer states are on disk.
//
// Takes about half a second, or some rounds if blocks are large. Draws no random numbers. Throws RunError on all ranks
// if one has too little memory. Only rank 0's result is complete. Collective.
plan::Cluster measured_rates(const RunSpec& spec, std::vector<int> host_of_rank, Communicator& world);

}  // namespace braid::train
