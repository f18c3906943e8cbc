// The host of each rank, from run.placement, and its threads, from train.threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns the number of threads of a rank: train.threads if that is not 0. Else returns 1 in reproducible mode, so that
// results do not depend on the mesh. Else returns the number of threads that the model's matrix products for a
// microbatch can keep busy, at least 1 and at most cores / ranks. `cores` are those of all ranks.
int threads_per_rank(const RunSpec& spec, int cores);

// Returns the threads that one sequence of model.context tokens can keep busy on one rank, at least 1 and at most
// `cores`.
int threads_to_generate(const ModelSpec& model, int cores);

inline constexpr const char* kPlacedInBlocks = "blocks";

// Returns the most ranks of one host when ranks are placed in blocks.
inline int most_ranks_of_host(int64_t num_ranks, int num_hosts) {
  return static_cast<int>((num_ranks + num_hosts - 1) / num_hosts);
}

// Returns the host of each rank from a comma-separated list of host numbers. The list must have `num_ranks` entries,
// begin with host 0, and name each of the `num_hosts` hosts. Returns an empty vector if it does not.
std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts);

// Returns the node of each rank for collectives in two levels: its host, or by mesh.ranks_per_node if that is not 0.
std::vector<int> collective_nodes(std::vector<int> host_of_rank, int ranks_per_node);

}  // namespace braid::spec
