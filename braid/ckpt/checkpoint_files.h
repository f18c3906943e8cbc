// The files of one checkpoint. Each is opened once and compared with the manifest; its blocks are compared with the
// manifest's digests.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "braid/base/checked_file.h"
#include "braid/base/direct_files.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/safetensors.h"

namespace braid::ckpt {

// Number of threads that read at the same time. A disk that gets one request at a time is slow.
inline constexpr int kReaders = 4;

// Calls read(number, reader) for each number in [0, count), in about that order, and returns when all are done.
// `reader` is in [0, kReaders); calls with the same reader do not overlap. If calls throw, rethrows the exception of
// the lowest number that failed; higher numbers may not have been called.
void read_in_parallel(int64_t count, const std::function<void(int64_t number, int reader)>& read);

// A safetensors file whose size and header agree with the manifest.
struct StoredFile {
  explicit StoredFile(const std::string& path) : file(path) {}

  CheckedFile file;
  SafetensorsHeader header;
  std::map<std::string, TensorEntry> entries;  // by name in the file
};

class CheckpointFiles {
 public:
  // `folder` is a result of found_directory(). `manifest` outlives this.
  CheckpointFiles(std::string folder, const Manifest& manifest);

  // Returns the file `name`, which the first call opens. Throws IoError if its size or header differs from the
  // manifest. Does not check the tensors' bytes.
  const StoredFile& open(const std::string& name);
  // Returns the offset in the file at which the box's bytes begin.
  int64_t begin_of(const std::string& tensor, const ManifestBox& box);

  // Returns the buffer of one reader of read_in_parallel(): kBlockBytes of aligned_bytes().
  std::span<std::byte> memory_of(int reader);

  // Reads these blocks and compares their digests. Throws IoError naming the file, the block and, if the changed bytes
  // belong to one, the tensor.
  void verify(const std::string& name, const std::set<int64_t>& blocks);
  // Compares the digest of a block whose `bytes` have been read. Throws as verify() does. May be called on any thread
  // once the file is open.
  void compare(const std::string& name, int64_t block, std::span<const std::byte> bytes);
  // Verifies every block of a file, also of one without tensors.
  void verify(const std::string& name);

 private:
  struct Listed {
    const std::string* tensor;
    const ManifestBox* box;
  };

  void compare_header(const std::string& name, const StoredFile& stored) const;
  [[noreturn]] void throw_changed(const std::string& name, int64_t block);

  const std::string folder_;
  const Manifest& manifest_;
  std::map<std::string, std::map<std::string, Listed>> listed_;  // by file, then by name in the file
  std::map<std::string, std::unique_ptr<StoredFile>> opened_;
  AlignedBytes memory_[kReaders];
};

// Returns true if the file is one block of more than kBlockBytes (format up to version 3). Such a file is read in
// parts.
bool has_large_blocks(const ManifestFile& file);

// Returns "F32 [3, 4]".
std::string drawn(ElementType type, const std::vector<int64_t>& shape);

}  // namespace braid::ckpt
