// The host and the number of threads of each rank.
#include "braid/spec/rank_hosts.h"

#include <algorithm>
#include <set>
#include <sstream>

namespace braid::spec {
namespace {

// The least FLOPs per thread of a forward product with model.width x model.width weights. With fewer, waking a thread
// takes longer than it saves (bench/threads).
constexpr double kFlopsPerThread = 16e6;

int threads_with_work(const ModelSpec& model, double tokens, int limit) {
  const double flops = 2 * tokens * model.width * model.width;
  return std::clamp(static_cast<int>(std::min(flops / kFlopsPerThread, 1e6)), 1, std::max(1, limit));
}

}  // namespace

int threads_per_rank(const RunSpec& spec, int cores) {
  if (spec.train.threads > 0) return spec.train.threads;
  if (spec.train.reduction == Reduction::Reproducible) return 1;
  const double tokens = static_cast<double>(spec.train.microbatch) * spec.model.context / spec.mesh.tensor;
  return threads_with_work(spec.model, tokens, static_cast<int>(cores / num_world_ranks(spec)));
}

int threads_to_generate(const ModelSpec& model, int cores) { return threads_with_work(model, model.context, cores); }

std::vector<int> listed_hosts(const std::string& placement, int num_ranks, int num_hosts) {
  std::vector<int> hosts;
  std::istringstream words(placement);
  for (std::string word; std::getline(words, word, ',');) {
    const bool digits =
        !word.empty() && word.size() < 6 && std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; });
    hosts.push_back(digits ? std::stoi(word) : -1);
  }
  const bool fits = static_cast<int>(hosts.size()) == num_ranks &&
                    std::ranges::all_of(hosts, [&](int host) { return host >= 0 && host < num_hosts; }) &&
                    hosts[0] == 0 && std::set<int>(hosts.begin(), hosts.end()).size() == static_cast<size_t>(num_hosts);
  return fits ? hosts : std::vector<int>();
}

std::vector<int> collective_nodes(std::vector<int> host_of_rank, int ranks_per_node) {
  if (ranks_per_node == 0) return host_of_rank;
  for (size_t rank = 0; rank < host_of_rank.size(); ++rank) {
    host_of_rank[rank] = static_cast<int>(rank) / ranks_per_node;
  }
  return host_of_rank;
}

}  // namespace braid::spec
