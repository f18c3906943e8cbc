// The [sync] section: how replicas are kept in step.
#pragma once

#include <string>

#include "braid/spec/word.h"

namespace braid {

enum class ReplicationKind {
  AllReduce,        // gradients are summed at every step
  LocalSgd,         // replicas train apart and average their weights
  DiLoCo,           // as LocalSgd, with an optimizer of its own for the averages
  ParameterServer,  // servers hold the optimizer
};
constexpr auto words(ReplicationKind) {
  return std::to_array<std::string_view>({"all-reduce", "local-sgd", "diloco", "parameter-server"});
}

// On: buckets are reduced while backward runs; Auto: as measured.
enum class OverlapChoice { Auto, On, Off };
constexpr auto words(OverlapChoice) { return std::to_array<std::string_view>({"auto", "on", "off"}); }

enum class OnOff { Off, On };
constexpr auto words(OnOff) { return std::to_array<std::string_view>({"off", "on"}); }

// The encoding of gradients on the wire.
enum class CompressionKind { None, BFloat16, Float16, TopK, OneBit, EightBit, PowerSgd };
constexpr auto words(CompressionKind) {
  return std::to_array<std::string_view>({"none", "bfloat16", "float16", "top-k", "one-bit", "eight-bit", "power-sgd"});
}

// The unit of sharded parameters that is gathered and freed at once.
enum class GatherUnit { Block, Stage };
constexpr auto words(GatherUnit) { return std::to_array<std::string_view>({"block", "stage"}); }

// The consistency of a parameter server: its promise about the age of what workers read (docs/parameter_server.md).
enum class Consistency {
  Bsp,  // bulk synchronous: a clock's pushes are averaged and applied together; everybody waits for everybody
  Ssp,  // stale synchronous: as Asp, but a worker at clock c reads only when the slowest is at c - staleness or later.
        // Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server" (NIPS 2013)
  Asp,  // asynchronous: a push is applied when it comes; nobody waits
};
constexpr auto words(Consistency) { return std::to_array<std::string_view>({"bsp", "ssp", "asp"}); }

struct SyncSpec {
  ReplicationKind replication = ReplicationKind::AllReduce;
  double bucket_mb = 25;       // gradient bucket, in 2^20 bytes
  double first_bucket_mb = 1;  // the bucket that is ready first in backward
  OverlapChoice overlap = OverlapChoice::Auto;
  OnOff tune_buckets = OnOff::Off;  // bucket_mb is chosen from measured steps
  CompressionKind compression = CompressionKind::None;
  double compression_fraction = 0.01;  // top-k: share of the elements that travel
  int compression_rank = 4;            // power-sgd
  int compression_start = 0;           // steps before compression begins
  int zero = 0;        // what is sharded: 1 optimizer states, 2 gradients too, 3 parameters too (ZeRO's stages)
  int zero_group = 0;  // data ranks that shard together, the others hold copies; 0: all
  GatherUnit zero_gather = GatherUnit::Block;  // zero 3
  int period = 1;                              // local-sgd, diloco: steps between two synchronisations
  int period_warmup = 0;                       // local-sgd, diloco: steps synchronised one by one first
  double outer_lr = 0.7;                       // diloco
  double outer_momentum = 0.9;                 // diloco
  int servers = 1;                             // parameter-server: the parameters are cut into so many key ranges
  Consistency consistency = Consistency::Bsp;  // parameter-server
  int staleness = 0;                           // ssp: clocks a worker may be ahead of the slowest
  int push_every = 1;                          // parameter-server: steps between two pushes of gradients
  int pull_every = 1;                          // parameter-server: steps between two pulls of parameters

  bool operator==(const SyncSpec&) const = default;
};

}  // namespace braid
