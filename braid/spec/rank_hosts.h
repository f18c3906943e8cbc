// The host of each rank, from run.placement, and its threads, from train.threads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::spec {

// The number of threads that a rank computes with.

// train.threads. Where that is 0: as many as have work in the model's matrix products for a microbatch on one rank, at
// least 1 and at most the cores shared out evenly; 1 in reproducible mode, so that layouts compare.
int threads_per_rank(const RunSpec& spec, int cores);

// By the same rule, for one sequence of model.context tokens on one rank.
int threads_to_generate(const ModelSpec& model, int cores);

inline constexpr const char* kPlacedInBlocks = "blocks";

// Returns the most ranks of one host when ranks are placed in blocks.
inline int most_ranks_of_host(int64_t num_ranks, int num_hosts) {
  return static_cast<int>((num_ranks + num_hosts - 1) / num_hosts);
}

// By rank, of a list with commas between the numbers of hosts. Empty where it is none of `num_ranks` hosts, 0 the
// first, of which each of `num_hosts` is named.
std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts);

}  // namespace braid::spec
