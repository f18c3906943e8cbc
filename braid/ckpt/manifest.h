// manifest.json: the files and tensors of a checkpoint. It is written last, so a folder without one is no checkpoint.
// Format: docs/checkpoint_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "braid/base/digest.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"

namespace braid::ckpt {

// Files are digested in blocks of so many bytes, the last of a file in what is left.
inline constexpr int64_t kBlockBytes = 4 << 20;

struct ManifestFile {
  int64_t bytes = 0;
  int64_t block_bytes = kBlockBytes;  // up to version 3: the whole file is one block
  std::vector<NamedDigest> blocks;
  bool operator==(const ManifestFile&) const = default;
};

struct ManifestBox {
  std::string file;
  mesh::Box box;     // of the tensor
  NamedDigest hash;  // of its bytes
  bool operator==(const ManifestBox&) const = default;
};

struct ManifestTensor {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<ManifestBox> boxes;  // disjoint, they cover the tensor
  bool operator==(const ManifestTensor&) const = default;
};

// Files and what they hold: all of a checkpoint, or what one rank wrote of it.
struct ManifestParts {
  std::map<std::string, ManifestFile> files;      // by name inside the folder
  std::map<std::string, ManifestTensor> tensors;  // by name

  void add(ManifestParts other);  // boxes of a tensor that both have are those of both
};

struct Manifest : ManifestParts {
  CheckpointInfo info;
  int64_t version = 0;  // of the one that was read; what is written has kManifestVersion
};

// Versions 2 and 3 have whole tensors and one digest for each file, version 2 XXH64 alone, version 1 neither data nor
// tokenizer files; all are read.
inline constexpr int kManifestVersion = 4;

// Returns true for a safetensors file; the other files of a checkpoint are the tokenizer's.
bool holds_tensors(const std::string& file_name);

// Returns true for a weight. Names of all other tensors (optimizer and replication states) have a "/".
bool is_weight(const std::string& tensor);

// Returns the name of a tensor's box in its file: the tensor's own if the box is all of it, else
// "wte.weight[0:128,0:384]".
std::string stored_name(const std::string& tensor, const mesh::Index& shape, const mesh::Box& box);
mesh::Index extents(const mesh::Box& box);

// The whole file; its last member is the digest of the bytes before it (sealed_json.h).
std::string manifest_text(const Manifest& manifest);

// Throws IoError naming `path` and the byte when `text` is not what manifest_text makes, or a tensor that its boxes do
// not cover once.
Manifest parse_manifest(const std::string& path, const std::string& text);

// Parts alone, as they travel between ranks. check() fails for what packed() did not make.
std::string packed(const ManifestParts& parts);
ManifestParts unpacked_parts(std::string_view text);

// The folder that holds the checkpoint `directory`: itself, or `directory`.old where a save was interrupted while it
// replaced the checkpoint. Throws IoError where the system does not say what is there.
std::string found_directory(const std::string& directory);

// Reads the manifest of the checkpoint in `directory`, a result of found_directory. Throws IoError if there is none.
Manifest read_manifest(const std::string& directory);

// Names beside a checkpoint's own: what is being written, step-8.tmp.<process>-<eight digits>, a name of each save's
// own (before version 4 step-8.tmp); and what is being replaced.
std::string temporary_name(const std::string& directory);  // without what is each save's own
bool is_temporary_name(std::string_view entry, const std::string& name);
std::string aside_name(const std::string& directory);

}  // namespace braid::ckpt
