// Creates and publishes the folder of one checkpoint, in an order that never shows a half-written one. Runs on rank 0.
// Between construction and publish(), each rank writes its own tensor files into the folder.
//
//   step-8.tmp.91-5f02c9d1/                              created, under a name that no other save has
//     model-00001-of-00002.safetensors  by rank 0 \     each: write, digest, fsync, close; ranks run in parallel
//     model-00002-of-00002.safetensors  by rank 1 /
//     tokenizer.json                                     the tokenizer's files: same steps, by rank 0
//     manifest.json                                      same steps, by rank 0, last
//   step-8.tmp.91-5f02c9d1                               fsync
//   step-8                  -> step-8.old                only if step-8 exists
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

// The writer of one checkpoint's folder. Every method throws IoError. Unless publish() has returned, the destructor
// removes what was written. REQUIRES: no rank writes in the folder when the destructor runs.
class CheckpointWriter {
 public:
  // Removes what interrupted saves left, puts back a checkpoint that one of them set aside, and creates the folder.
  // Throws IoError, before creating the folder, unless all of this holds:
  // * the parent folder of `directory` exists; it is not created again if it was removed during the run;
  // * its disk has `bytes` free;
  // * `directory` is a checkpoint, an empty folder or nothing, so that other files are never removed.
  // `files` must outlive this.
  CheckpointWriter(const std::string& directory, int64_t bytes, FileSystem& files);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  const std::string& folder() const { return temporary_; }

  // Writes the tokenizer's files (contents by file name) and the manifest, and renames the folder to its final name.
  // `manifest` has the files of all ranks; the tokenizer's are added to it. If this throws, the destructor puts the
  // previous checkpoint back in its place.
  void publish(Manifest manifest, const std::map<std::string, std::string>& tokenizer_files);

 private:
  void recover();
  void replace();
  void undo() noexcept;

  const std::string directory_, temporary_;
  FileSystem& files_;
  bool aside_ = false, renamed_ = false, published_ = false;
};

// Returns why a checkpoint cannot be saved as `directory`: something that is no checkpoint has this name. Empty if it
// can.
std::string why_not_replaceable(const std::string& directory);

// Returns the half-written folders that interrupted saves of this checkpoint have left.
std::vector<std::string> leftovers(const std::string& directory);

}  // namespace braid::ckpt
