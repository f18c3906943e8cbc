// The [sync] section: how replicas are synchronised.
#pragma once

#include <string>

#include "braid/base/word.h"
#include "braid/spec/overlap_choice.h"

namespace braid {

enum class ReplicationKind {
  AllReduce,        // gradients are all-reduced at every step
  LocalSgd,         // replicas train independently and average their weights
  DiLoCo,           // as LocalSgd, with an outer optimizer for the averages
  ParameterServer,  // servers hold the optimizer
};
constexpr auto words(ReplicationKind) {
  return std::to_array<std::string_view>({"all-reduce", "local-sgd", "diloco", "parameter-server"});
}

enum class OnOff { Off, On };
constexpr auto words(OnOff) { return std::to_array<std::string_view>({"off", "on"}); }

// The encoding of gradients on the wire.
enum class CompressionKind { None, BFloat16, Float16, TopK, OneBit, EightBit, PowerSgd };
constexpr auto words(CompressionKind) {
  return std::to_array<std::string_view>({"none", "bfloat16", "float16", "top-k", "one-bit", "eight-bit", "power-sgd"});
}

// The unit in which sharded parameters are gathered and freed.
enum class GatherUnit { Block, Stage };
constexpr auto words(GatherUnit) { return std::to_array<std::string_view>({"block", "stage"}); }

// The consistency of a parameter server: how old the parameters that workers read may be (docs/parameter_server.md).
enum class Consistency {
  Bsp,  // bulk synchronous: a clock's pushes are averaged and applied together; each worker waits for all others
  Ssp,  // stale synchronous: as Asp, but a worker at clock c reads only when the slowest is at c - staleness or later.
        // Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server" (NIPS 2013)
  Asp,  // asynchronous: a push is applied when it arrives; no worker waits
};
constexpr auto words(Consistency) { return std::to_array<std::string_view>({"bsp", "ssp", "asp"}); }

// The place of parameter servers. Ranks: server s is a thread of data rank s mod n. Own: each server is a rank of its
// own, after the ranks of the mesh.
enum class ServersOn { Ranks, Own };
constexpr auto words(ServersOn) { return std::to_array<std::string_view>({"ranks", "own"}); }

struct SyncSpec {
  ReplicationKind replication = ReplicationKind::AllReduce;
  double bucket_mb = 25;                        // size of a gradient bucket, in 2^20 bytes
  double first_bucket_mb = 1;                   // size of the bucket that is ready first in backward
  OverlapChoice overlap = OverlapChoice::Auto;  // of the reduction of buckets and backward
  OnOff tune_buckets = OnOff::Off;              // bucket_mb is chosen from measured steps
  CompressionKind compression = CompressionKind::None;
  double compression_fraction = 0.01;  // top-k: fraction of the elements that is sent
  int compression_rank = 4;            // power-sgd: rank of the factors
  int compression_start = 0;           // steps before compression begins
  int zero = 0;                        // ZeRO's stage: 1 shards optimizer states, 2 also gradients, 3 also parameters
  int zero_group = 0;                  // data ranks over which one copy is sharded; 0: all
  GatherUnit zero_gather = GatherUnit::Block;  // zero 3
  int period = 1;                              // local-sgd, diloco: steps between two synchronisations
  int period_warmup = 0;                       // local-sgd, diloco: steps with all-reduced gradients before it begins
  double outer_lr = 0.7;                       // diloco: learning rate of the outer optimizer
  double outer_momentum = 0.9;                 // diloco: momentum of the outer optimizer
  int servers = 1;                             // parameter-server: number of servers, each with a key range
  ServersOn servers_on = ServersOn::Ranks;     // parameter-server
  Consistency consistency = Consistency::Bsp;  // parameter-server
  int staleness = 0;                           // ssp: clocks by which a worker may be ahead of the slowest
  int push_every = 1;                          // parameter-server: steps between two pushes of gradients
  int pull_every = 1;                          // parameter-server: steps between two pulls of parameters

  bool operator==(const SyncSpec&) const = default;
};

// Returns the number of ranks outside the mesh: the parameter servers that are ranks of their own.
inline int num_server_ranks(const SyncSpec& sync) {
  const bool own = sync.replication == ReplicationKind::ParameterServer && sync.servers_on == ServersOn::Own;
  return own ? sync.servers : 0;
}

}  // namespace braid
