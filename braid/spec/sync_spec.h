// The [sync] section: how replicas are kept in step.
#pragma once

#include <string>

namespace braid {

struct SyncSpec {
  std::string replication = "all-reduce";  // all-reduce, local-sgd, diloco or parameter-server
  double bucket_mb = 25;                   // gradient bucket, in 2^20 bytes
  double first_bucket_mb = 1;              // the bucket that is ready first in backward
  std::string overlap = "auto";            // auto, on or off: whether buckets leave while backward still runs
  std::string tune_buckets = "off";        // on or off: bucket_mb is chosen from measured steps
  std::string compression = "none";    // none, bfloat16, float16, top-k, one-bit, eight-bit or power-sgd: on the wire
  double compression_fraction = 0.01;  // top-k: share of the elements that travel
  int compression_rank = 4;            // power-sgd
  int compression_start = 0;           // steps before compression begins
  int zero = 0;        // what is sharded: 1 optimizer states, 2 gradients too, 3 parameters too (ZeRO's stages)
  int zero_group = 0;  // data ranks that shard together, the others hold copies; 0: all
  std::string zero_gather = "block";  // zero 3: block or stage, what is gathered and freed at once
  int period = 1;                     // local-sgd, diloco: steps between two synchronisations
  int period_warmup = 0;              // local-sgd, diloco: steps synchronised one by one first
  double outer_lr = 0.7;              // diloco
  double outer_momentum = 0.9;        // diloco
  int servers = 1;                    // parameter-server: the parameters are cut into so many key ranges
  std::string consistency = "bsp";    // parameter-server: bsp, ssp or asp
  int staleness = 0;                  // ssp: clocks a worker may be ahead of the slowest
  int push_every = 1;                 // parameter-server: steps between two pushes of gradients
  int pull_every = 1;                 // parameter-server: steps between two pulls of parameters

  bool operator==(const SyncSpec&) const = default;
};

}  // namespace braid
