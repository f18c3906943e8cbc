// A copy on the host of everything that one rank writes of a checkpoint. An asynchronous save writes it while training
// continues. Its memory is allocated before the first save.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/shard_plan.h"
#include "braid/ckpt/shard_writer.h"

namespace braid::ckpt {

class Snapshot {
 public:
  // Takes the memory, and touches all of it: the first copy is as fast as any. `shard` outlives this.
  explicit Snapshot(const Shard& shard);
  Snapshot(const Snapshot&) = delete;

  int64_t bytes() const { return memory_.numel(); }
  // Bytes that a snapshot of `shard` takes.
  static int64_t bytes_of(const Shard& shard);

  // Copies the boxes of the shard out of `tensors`, which hold them, on the host or on a device. Blocks. Nobody reads
  // rows meanwhile.
  void take(const std::vector<PlacedTensor>& tensors);
  // Returns views of the newest snapshot, valid while this lives; on any thread.
  BoxRows rows() const;
  // The first weight, which is a tensor without a "/" in its name, that has a value which is not finite; empty where
  // all are. On any thread.
  std::string weight_not_finite() const;

 private:
  at::Tensor values(const PlannedBox& planned) const;

  const Shard& shard_;
  at::Tensor memory_;                                              // bytes
  std::map<std::pair<std::string, mesh::Index>, int64_t> places_;  // by tensor and first element of the box
};

}  // namespace braid::ckpt
