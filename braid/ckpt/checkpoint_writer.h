// The files of one checkpoint, in the order that makes a half-written one invisible. Runs on one rank.
// It knows no ranks: it is given whole tensors.
//
//   step-8.tmp/tokenizer.json          the tokenizer's files: each as those below
//   step-8.tmp/model.safetensors       write, hash, fsync, close
//   step-8.tmp/optimizer.safetensors   the same
//   step-8.tmp/manifest.json           the same, last
//   step-8.tmp                         fsync
//   step-8      -> step-8.old          only when there is one to replace
//   step-8.tmp  -> step-8              rename: published
//   parent                             fsync
//   step-8.old                         removed
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/digest.h"
#include "braid/base/file_system.h"
#include "braid/ckpt/manifest.h"

namespace braid {

// Every method throws IoError. Unless publish() has returned, the destructor removes what was written.
class CheckpointWriter {
 public:
  // Removes what an interrupted save has left (or puts back the checkpoint that it set aside), and begins. The folder
  // that `directory` goes into is there: one that was removed under a run is not made again. `files` must outlive this.
  CheckpointWriter(std::string directory, CheckpointInfo info, FileSystem& files);
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;

  // A whole file.
  void add(const std::string& name, std::string_view content);
  // Begins a file of `tensors`, which append() then takes in the same order, contiguous on the host.
  void open(const std::string& name, std::vector<TensorEntry> tensors);
  void append(const at::Tensor& tensor);
  void close();
  // Renames the folder to its final name. On failure the checkpoint that was there before is back in its place.
  void publish();

 private:
  void begin(const std::string& name, std::vector<TensorEntry> tensors);
  void write(std::span<const std::byte> bytes);
  void recover();
  void replace();
  void undo() noexcept;

  const std::string directory_;
  FileSystem& files_;
  Manifest manifest_;
  std::string name_;                  // of the open file
  std::vector<TensorEntry> tensors_;  // of the open file
  size_t next_ = 0;                   // of tensors_
  std::unique_ptr<WritableFile> file_;
  Digest digest_{DigestKind::Xxh3};  // of the open file
  int64_t bytes_ = 0;
  bool aside_ = false, renamed_ = false, published_ = false;
};

}  // namespace braid
