// Runs with parameter servers, for the tests of what they train and of what they keep.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "tests/train/layout_run.h"

namespace braid {

inline constexpr int kServedMicrobatches = 8;  // per data rank

// Unclipped, in float64; `consistency` "": no servers.
inline RunSpec served_spec(const ScheduleOnMesh& layout, const std::string& consistency = "bsp") {
  RunSpec spec = tiny_spec(6, kServedMicrobatches * layout.mesh.data);
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  spec.optimizer.clip_norm = 0;
  if (consistency.empty()) return spec;
  spec.sync.replication = ReplicationKind::ParameterServer;
  spec.sync.servers = 2;
  spec.sync.consistency = value_of<Consistency>(consistency).value();
  return spec;
}

// The weights of each rank, by world rank; NaN elsewhere.
using EachRanks = std::vector<std::map<std::string, at::Tensor>>;

// Returns true if ranks with the same element have the same bits of it; `num_shared`: how many parameters several have.
inline bool copies_agree(const EachRanks& ranks, int* num_shared = nullptr) {
  for (size_t a = 0; a < ranks.size(); ++a) {
    for (size_t b = 0; b < a; ++b) {
      for (const auto& [name, of_a] : ranks[a]) {
        const auto of_b = ranks[b].find(name);
        if (of_b == ranks[b].end()) continue;
        const at::Tensor both = of_a.eq(of_a).logical_and(of_b->second.eq(of_b->second));
        if (!both.any().item<bool>()) continue;
        if (num_shared) ++*num_shared;
        if (of_a.ne(of_b->second).logical_and(both).any().item<bool>()) return false;
      }
    }
  }
  return true;
}

// Weights after `body` on every rank.
inline EachRanks weights_after(const RunSpec& spec, const std::function<void(train::Trainer&)>& body) {
  EachRanks ranks(static_cast<size_t>(mesh::DeviceMesh(spec.mesh).num_ranks()));
  std::mutex lock;
  on_every_rank(spec, [&](train::Trainer& trainer) {
    body(trainer);
    const std::scoped_lock hold(lock);
    collect(trainer, ranks[static_cast<size_t>(trainer.groups().world.rank())], Held::Weights);
  });
  return ranks;
}

}  // namespace braid
