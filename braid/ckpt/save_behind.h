// Asynchronous saves. Training stops while this rank's tensors are copied; a background thread then writes the copy,
// and rank 0's publishes the checkpoint. Only the rank's main thread communicates.
//
//   start()                  snapshot taken                       rank 0's thread: the folder
//   advance()   collective   all know the folder                  each rank's thread: its files
//   advance()   collective   all have written: reports to rank 0  rank 0's thread: manifest, renames
//   advance()   collective   published, or all throw the same
//
// A rank that can start no thread does the work of a phase in the call that begins it.
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

// A copy on the host of everything that one rank writes of a checkpoint. An asynchronous save writes it while training
// continues. Its memory is allocated before the first save.
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

class SaveBehind {
 public:
  // For saves of the tensors that `plan` was made for. `world` and `files` outlive this; `files` is used by one thread
  // of each rank at a time. Takes the memory.
  SaveBehind(SavePlan plan, Communicator& world, FileSystem& files);
  // Cancels a save that is under way: this rank's thread ends at its next block, and nothing is published.
  ~SaveBehind();
  SaveBehind(const SaveBehind&) = delete;

  int64_t bytes() const { return snapshot_.bytes(); }

  // Returns when all is copied; tokenizer files outlive the save. None is under way. Every rank calls it; none waits
  // for another.
  void start(const std::string& directory, const CheckpointContent& content);

  // The same on all ranks.
  bool under_way() const { return phase_ != Phase::None; }
  // Returns true while this rank's thread works; the next call may return false.
  bool busy() const { return busy_.load(std::memory_order_acquire); }
  // Waits for the threads, and goes on to the next phase. True when that was the last: the checkpoint is there. Throws
  // the same IoError on all ranks where a file could not be written or published, or a weight is not finite, which it
  // names; what was there before is kept, and nothing is under way. Collective.
  bool advance();
  // Until it is there. Collective.
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
  ShardReport report_;            // of the thread
  Manifest manifest_;             // rank 0's, while it publishes
  std::string fault_;             // of rank 0's thread, in text
  std::exception_ptr exception_;  // of the thread: neither an IoError nor of giving up
};

}  // namespace braid::ckpt
