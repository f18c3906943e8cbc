// The folder of one checkpoint, in the order that makes a half-written one invisible. Runs on rank 0; the tensors'
// files in it are written by all ranks, each its own, while this waits.
//
//   step-8.tmp.91-5f02c9d1/                              made, under a name that no other save has
//     model-00001-of-00002.safetensors  by rank 0 \     each: write, digest, fsync, close; all at the same time
//     model-00002-of-00002.safetensors  by rank 1 /
//     tokenizer.json                                     the tokenizer's files: the same, here
//     manifest.json                                      the same, last
//   step-8.tmp.91-5f02c9d1                               fsync
//   step-8                  -> step-8.old                only when there is one to replace
//   step-8.tmp.91-5f02c9d1  -> step-8                    rename: published
//   parent                                               fsync
//   step-8.old                                           removed
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "braid/base/file_system.h"
#include "braid/ckpt/manifest.h"

namespace braid::ckpt {

// Every method throws IoError. Unless publish() has returned, the destructor removes what was written; by then nobody
// writes in the folder any more.
class CheckpointWriter {
 public:
  // Removes what interrupted saves have left (or puts back the checkpoint that one set aside), and makes the folder.
  // The folder that `directory` goes into is there: one that was removed under a run is not made again. Its disk has
  // room for `bytes`. `directory` itself is a checkpoint, an empty folder or nothing: files of somebody else are never
  // removed. `files` must outlive this.
  CheckpointWriter(const std::string& directory, int64_t bytes, FileSystem& files);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  const std::string& folder() const { return temporary_; }

  // `manifest` has the files of all ranks; the tokenizer's, bytes by file name, are written here and added. Renames the
  // folder to its final name. On failure the checkpoint that was there before is back in its place.
  void publish(Manifest manifest, const std::map<std::string, std::string>& tokenizer_files);

 private:
  void recover();
  void replace();
  void undo() noexcept;

  const std::string directory_, temporary_;
  FileSystem& files_;
  bool aside_ = false, renamed_ = false, published_ = false;
};

// Why a checkpoint cannot be saved as `directory`: something that is no checkpoint has this name. Empty: it can.
std::string why_not_replaceable(const std::string& directory);

// The half-written folders that interrupted saves of this checkpoint have left.
std::vector<std::string> leftovers(const std::string& directory);

}  // namespace braid::ckpt
