// The [mesh] section: the number of ranks along each axis.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "braid/spec/overlap_choice.h"

namespace braid {

// The value of batch_shares that gives all data ranks equal parts of the batch.
inline constexpr const char* kEqualShares = "equal";

// How context ranks, which have parts of a sequence, compute its attention.
enum class ContextParallel {
  Ring,         // keys and values go around; each rank's queries meet all of them
  AllGather,    // each rank gathers the keys and values of all
  Ulysses,      // all-to-all to whole sequences of some of the heads, and back
  UlyssesRing,  // all-to-all among neighbouring ranks, and a ring of such groups
};
constexpr auto words(ContextParallel) {
  return std::to_array<std::string_view>({"ring", "all-gather", "ulysses", "ulysses-ring"});
}

struct MeshSpec {
  int pipe = 1;
  int data = 1;
  int context = 1;
  int expert = 1;
  int tensor = 1;
  ContextParallel context_parallel = ContextParallel::Ring;  // how context ranks compute attention
  int ulysses_ranks = 0;           // ranks of an all-to-all under UlyssesRing; 0: as exchange_ranks() says
  bool sequence_parallel = false;  // tensor ranks split the tokens of norms and residuals
  OverlapChoice tensor_overlap = OverlapChoice::Auto;  // of collectives of tensor ranks and products of backward
  int ranks_per_node = 0;                   // consecutive ranks that are one node to collectives; 0: as placed
  std::string batch_shares = kEqualShares;  // the shares of the data ranks (batch_shares.h)

  bool operator==(const MeshSpec&) const = default;
};

// Returns the number of ranks along all axes.
inline int64_t num_ranks(const MeshSpec& mesh) {
  return int64_t{mesh.pipe} * mesh.data * mesh.context * mesh.expert * mesh.tensor;
}

// Returns the number of replicas, which train on different sequences. Expert ranks count, since they also split the
// batch (kSampleAxes in mesh/placement.h).
inline int64_t num_replicas(const MeshSpec& mesh) { return int64_t{mesh.data} * mesh.expert; }

}  // namespace braid
