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

// The size of the blocks in which files are digested. A file's last block may be shorter.
inline constexpr int64_t kBlockBytes = 4 << 20;

struct ManifestFile {
  int64_t bytes = 0;
  int64_t block_bytes = kBlockBytes;  // up to version 3: all of the file
  std::vector<NamedDigest> blocks;
  bool operator==(const ManifestFile&) const = default;
};

struct ManifestBox {
  std::string file;
  mesh::Box box;     // its place in the tensor
  NamedDigest hash;  // digest of the box's bytes
  bool operator==(const ManifestBox&) const = default;
};

struct ManifestTensor {
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  std::vector<ManifestBox> boxes;  // disjoint; they cover the tensor
  bool operator==(const ManifestTensor&) const = default;
};

// Files and the tensors in them: those of a whole checkpoint, or those that one rank wrote.
struct ManifestParts {
  std::map<std::string, ManifestFile> files;      // by name inside the folder
  std::map<std::string, ManifestTensor> tensors;  // by name

  void add(ManifestParts other);  // a tensor that both have gets the boxes of both
};

struct Manifest : ManifestParts {
  CheckpointInfo info;
  int64_t version = 0;  // version that was read; kManifestVersion is written
};

// The version that is written. Versions 1 to 3 are read too. They have whole tensors and one digest per file. Versions
// 1 and 2 have XXH64 digests only. Version 1 has neither `data` nor tokenizer files.
inline constexpr int kManifestVersion = 4;

// Returns true for a safetensors file; the other files of a checkpoint are the tokenizer's.
bool holds_tensors(const std::string& file_name);

// Returns true for a weight. Names of all other tensors (optimizer and replication states) have a "/".
bool is_weight(const std::string& tensor);

// Returns the name of a tensor's box in its file: the tensor's own if the box is all of it, else
// "wte.weight[0:128,0:384]".
std::string stored_name(const std::string& tensor, const mesh::Index& shape, const mesh::Box& box);
mesh::Index extents(const mesh::Box& box);

// Returns the content of manifest.json. Its last member is the digest of the bytes before it (sealed_json.h).
std::string manifest_text(const Manifest& manifest);

// Throws IoError naming `path` and the fault if `text` is not a result of manifest_text() (of this version or an older
// one), or if a tensor's boxes do not cover it exactly once.
Manifest parse_manifest(const std::string& path, const std::string& text);

// Parts as text for other ranks, and back. check() fails if `text` is not a result of packed().
std::string packed(const ManifestParts& parts);
ManifestParts unpacked_parts(std::string_view text);

// Returns the folder that holds the checkpoint `directory`. This is `directory` itself, or `directory`.old if a save
// was interrupted while it replaced the checkpoint. Throws IoError if the system cannot tell what exists.
std::string found_directory(const std::string& directory);

// Reads the manifest of the checkpoint in `directory`, a result of found_directory. Throws IoError if there is none.
Manifest read_manifest(const std::string& directory);

// Names beside that of a checkpoint step-8. A save writes into step-8.tmp.<process>-<eight digits>, a name that no
// other save has (before version 4: step-8.tmp). A checkpoint that is being replaced is called step-8.old.
std::string temporary_name(const std::string& directory);  // "step-8.tmp", without the part that differs between saves
bool is_temporary_name(std::string_view entry, const std::string& name);
std::string aside_name(const std::string& directory);

}  // namespace braid::ckpt
