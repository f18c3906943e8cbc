// manifest.json: what a checkpoint is made of. Written last, so a folder without one is not a checkpoint.
// It knows no tensors' values. Format: docs/checkpoint_format.md.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "braid/base/digest.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/safetensors.h"

namespace braid {

struct ManifestFile {
  int64_t bytes = 0;
  NamedDigest hash;  // of the whole file
  bool operator==(const ManifestFile&) const = default;
};

struct ManifestTensor {
  std::string file;
  ElementType type = ElementType::F32;
  std::vector<int64_t> shape;
  NamedDigest hash;  // of its bytes
  bool operator==(const ManifestTensor&) const = default;
};

struct Manifest {
  CheckpointInfo info;
  std::map<std::string, ManifestFile> files;      // by name inside the folder
  std::map<std::string, ManifestTensor> tensors;  // by name
};

// Version 2 has XXH64 alone, version 1 neither data nor tokenizer files; both are read too.
inline constexpr int kManifestVersion = 3;

// Whether a file of a checkpoint is a safetensors file; the others are the tokenizer's.
bool holds_tensors(const std::string& file_name);

// The whole file; its last member is the digest of the bytes before it (sealed_json.h).
std::string manifest_text(const Manifest& manifest);

// Throws IoError naming `path` and the byte when `text` is not what manifest_text makes.
Manifest parse_manifest(const std::string& path, const std::string& text);

// The folder that holds the checkpoint `directory`: itself, or `directory`.old where a save was interrupted while it
// replaced the checkpoint. Throws IoError where the system does not say what is there.
std::string found_directory(const std::string& directory);

// Of the checkpoint in `directory`, as found_directory gives it. Throws IoError when there is none.
Manifest read_manifest(const std::string& directory);

// Names beside a checkpoint's own: what is being written, and what is being replaced.
std::string temporary_name(const std::string& directory);
std::string aside_name(const std::string& directory);

}  // namespace braid
