// Asynchronous saves. Training stops while this rank's tensors are copied. Then a background thread writes the copy,
// and rank 0's background thread publishes the checkpoint. Only the rank's main thread communicates.
//
//   start()                  snapshot taken                       rank 0's thread: creates the folder
//   advance()   collective   all know the folder                  each rank's thread: writes its files
//   advance()   collective   all have written: reports to rank 0  rank 0's thread: writes manifest, renames
//   advance()   collective   published, or all ranks throw the same error
//
// If a rank can start no thread, the call that begins a phase does its work.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/save.h"
#include "braid/ckpt/shard_plan.h"
#include "braid/ckpt/shard_writer.h"

namespace braid::ckpt {

// A copy on the host of everything that one rank writes of a checkpoint. An asynchronous save writes the copy while
// training continues. The memory is allocated before the first save.
class Snapshot {
 public:
  // Allocates the memory and touches all of it, so that the first copy is as fast as later ones. `shard` outlives this.
  explicit Snapshot(const Shard& shard);
  Snapshot(const Snapshot&) = delete;

  int64_t bytes() const { return memory_.numel(); }
  // Returns the bytes that a snapshot of `shard` needs.
  static int64_t bytes_of(const Shard& shard);

  // Copies the boxes of the shard out of `tensors`, which are on the host or on a device. Blocks. REQUIRES: `tensors`
  // hold all boxes of the shard, and no thread reads rows() meanwhile.
  void take(const std::vector<PlacedTensor>& tensors);
  // Returns a function that gives views of the newest snapshot. The views are valid while this lives. The function may
  // be called on any thread.
  BoxRows rows() const;
  // Returns the name of the first weight (is_weight()) that has a value that is not finite; empty if all are finite.
  // May be called on any thread.
  std::string weight_not_finite() const;

 private:
  at::Tensor values(const PlannedBox& planned) const;

  const Shard& shard_;
  at::Tensor memory_;                                              // bytes
  std::map<std::pair<std::string, mesh::Index>, int64_t> places_;  // offset, by tensor and first element
};

class SaveBehind {
 public:
  // Allocates the snapshot. `plan` was made for the tensors to save. `world` and `files` outlive this. On each rank,
  // only one thread at a time uses `files`.
  SaveBehind(SavePlan plan, Communicator& world, FileSystem& files);
  // Cancels a save that is under way. This rank's thread stops before its next rows, and nothing is published. If rank
  // 0's thread is already publishing, waits until the checkpoint is published.
  ~SaveBehind();
  SaveBehind(const SaveBehind&) = delete;

  int64_t bytes() const { return snapshot_.bytes(); }

  // Begins a save, and returns once the tensors are copied. Every rank calls this; no rank waits for another. The
  // tokenizer's files outlive the save. REQUIRES: no save is under way.
  void start(const std::string& directory, const CheckpointContent& content);

  // Returns true if a save is under way. The result is the same on all ranks.
  bool under_way() const { return phase_ != Phase::None; }
  // Returns true while this rank's thread works; it may finish at any time.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  // Collective. Waits for the threads, and begins the next phase. Returns true if that was the last: the checkpoint is
  // published. Throws the same IoError on all ranks if a file could not be written or published, or if a weight is not
  // finite (the error names it). Then the previous checkpoint is kept, and no save is under way. REQUIRES: a save is
  // under way.
  bool advance();
  // Collective. Calls advance() until no save is under way.
  void finish();

 private:
  enum class Phase { None, Opening, Writing, Publishing };

  void write();
  void publish();
  template <class Work>
  void run(const Work& work);
  void join();
  BoxRows rows();

  const SavePlan plan_;
  Communicator& world_;
  FileSystem& files_;
  Snapshot snapshot_;

  Phase phase_ = Phase::None;
  std::string directory_;
  OpenSave save_;
  CheckpointInfo info_;
  const std::map<std::string, std::string>* tokenizer_files_ = nullptr;

  std::thread thread_;
  std::atomic<bool> busy_ = false, given_up_ = false;
  ShardReport report_;            // outcome of this rank's thread
  Manifest manifest_;             // on rank 0, while its thread publishes
  std::string fault_;             // IoError of rank 0's thread, as text; empty: none
  std::exception_ptr exception_;  // any other exception of the thread, except GivenUp
};

}  // namespace braid::ckpt
