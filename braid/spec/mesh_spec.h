// The [mesh] section: how many ranks along each axis.
#pragma once

#include <cstdint>
#include <string>

namespace braid {

// Equal parts of the batch for all data ranks.
inline constexpr const char* kEqualShares = "equal";

struct MeshSpec {
  int pipe = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int tensor = 1;
  bool sequence_parallel = false;           // tensor ranks share the tokens where they do not share features
  int ranks_per_node = 0;                   // neighbours with fast links between them; 0: all
  std::string batch_shares = kEqualShares;  // of data ranks (batch_shares.h)

  bool operator==(const MeshSpec&) const = default;
};

// Along all axes.
inline int64_t num_ranks(const MeshSpec& mesh) {
  return int64_t{mesh.pipe} * mesh.data * mesh.context * mesh.expert * mesh.tensor;
}

// Ranks that have sequences of their own: data ranks, and expert ranks, which share the batch as well (kSampleAxes in
// mesh/placement.h).
inline int64_t num_replicas(const MeshSpec& mesh) { return int64_t{mesh.data} * mesh.expert; }

}  // namespace braid
