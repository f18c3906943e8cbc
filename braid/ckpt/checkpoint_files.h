// The files of one checkpoint, opened once. They are compared with the manifest, and their blocks with its digests.
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

// Reads with several requests in flight: a disk that gets one request at a time is slow.
inline constexpr int kReaders = 4;  // threads

// Calls read(number, reader) for numbers 0 .. count - 1, in about that order, and returns when none is left. Readers
// are 0 .. kReaders - 1; the calls of one come one after another. Throws what the lowest number that failed threw;
// those behind it may not have been called.
void read_in_parallel(int64_t count, const std::function<void(int64_t number, int reader)>& read);

// A safetensors file whose size and header are as the manifest says.
struct StoredFile {
  explicit StoredFile(const std::string& path) : file(path) {}

  CheckedFile file;
  SafetensorsHeader header;
  std::map<std::string, TensorEntry> entries;  // by the name in the file
};

class CheckpointFiles {
 public:
  // `folder` as found_directory() gives it. `manifest` outlives this.
  CheckpointFiles(std::string folder, const Manifest& manifest);

  // Opens it when it is asked for first. Throws IoError when it is not as the manifest says, bytes of tensors aside.
  const StoredFile& open(const std::string& name);
  // Where the box's bytes begin in its file.
  int64_t begin_of(const std::string& tensor, const ManifestBox& box);

  // kBlockBytes of aligned_bytes(), which each of the readers of read_in_parallel() has for its own.
  std::span<std::byte> memory_of(int reader);

  // Reads these blocks and compares their digests. Throws IoError naming the file, the block and, where the byte lies
  // in one, the tensor.
  void verify(const std::string& name, const std::set<int64_t>& blocks);
  // The same of a block that has been read: `bytes` are its. On any thread once the file is open.
  void compare(const std::string& name, int64_t block, std::span<const std::byte> bytes);
  // Every block of a file, one that holds no tensors too.
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
  std::map<std::string, std::map<std::string, Listed>> listed_;  // by file and the name in it
  std::map<std::string, std::unique_ptr<StoredFile>> opened_;
  AlignedBytes memory_[kReaders];
};

// Returns true for a file of one large block (format up to version 3), which is read in parts.
bool has_large_blocks(const ManifestFile& file);

// "F32 [3, 4]".
std::string drawn(ElementType type, const std::vector<int64_t>& shape);

}  // namespace braid::ckpt
