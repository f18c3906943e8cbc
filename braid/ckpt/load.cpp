// Reading a checkpoint: everything is compared before anything is written; then each box is read by its rows.
// It knows no ranks: it reads the boxes it is asked for.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <memory>

#include "braid/base/digest.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr int64_t kChunkBytes = 16 << 20;
constexpr size_t kMaxSuggestions = 8;  // looking for the nearest name costs a comparison with every name

std::string drawn(ElementType type, const std::vector<int64_t>& shape) {
  std::vector<std::string> extents;
  for (const int64_t extent : shape) extents.push_back(cat(extent));
  return cat(text(type), " [", joined(extents), "]");
}

// One file of a checkpoint, opened and compared with the manifest.
struct OpenFile {
  CheckedFile file;
  SafetensorsHeader header;
  std::map<std::string, TensorEntry> tensors;
  explicit OpenFile(const std::string& path) : file(path) {}
};

void check_against(const Manifest& manifest, const std::string& name, const OpenFile& open) {
  const auto& path = open.file.path();
  for (const auto& [tensor, entry] : open.tensors) {
    if (!manifest.tensors.count(tensor)) throw IoError(path, 8, cat("tensor ", tensor, " is not in the manifest"));
  }
  for (const auto& [tensor, said] : manifest.tensors) {
    if (said.file != name) continue;
    const auto found = open.tensors.find(tensor);
    if (found == open.tensors.end())
      throw IoError(path, 8, cat("has no tensor ", tensor, ", which the manifest lists"));
    const auto& info = found->second.info;
    if (info.type != said.type || info.shape != said.shape) {
      throw IoError(path, 8,
                    cat("tensor ", tensor, " is ", drawn(info.type, info.shape), "; the manifest says ",
                        drawn(said.type, said.shape)));
    }
  }
}

void check_size(const CheckedFile& file, int64_t expected) {
  const int64_t bytes = file.bytes();
  if (bytes == expected) return;
  throw IoError(file.path(), std::min(bytes, expected), cat("has ", bytes, " bytes; the manifest says ", expected));
}

std::unique_ptr<OpenFile> opened(const std::string& directory, const Manifest& manifest, const std::string& name) {
  auto open = std::make_unique<OpenFile>(directory + "/" + name);
  check_size(open->file, manifest.files.at(name).bytes);
  open->header = read_header(open->file);
  for (const auto& entry : open->header.tensors) open->tensors[entry.info.name] = entry;
  check_against(manifest, name, *open);
  return open;
}

std::vector<Problem> differences(const Manifest& manifest, const std::vector<PlacedTensor>& tensors) {
  std::vector<Problem> problems;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest.tensors) names.push_back(name);
  for (const auto& [name, placement, local] : tensors) {
    const auto found = manifest.tensors.find(name);
    const ElementType type = element_type(local.scalar_type());
    if (found == manifest.tensors.end()) {
      const bool suggest = problems.size() < kMaxSuggestions;
      problems.push_back({name, "", "is not in the checkpoint", suggest ? nearest(name, names) : ""});
    } else if (found->second.shape != placement.global_shape || found->second.type != type) {
      problems.push_back({name, drawn(found->second.type, found->second.shape),
                          cat("in the checkpoint; this run needs ", drawn(type, placement.global_shape)), ""});
    }
  }
  return problems;
}

// Reads the rows (indices of dim 0) that the piece touches, in chunks of bounded size, and keeps what it wants of them.
void read_piece(const OpenFile& open, const TensorEntry& entry, const Piece& piece, const at::Tensor& local) {
  const auto target = part_of(local, piece);
  if (target.numel() == 0) return;
  const bool scalar = entry.info.shape.empty();
  const int64_t begin = scalar ? 0 : piece.global.begin[0], end = scalar ? 1 : piece.global.end[0];
  const int64_t row_bytes = scalar ? entry.end - entry.begin : (entry.end - entry.begin) / entry.info.shape[0];
  const int64_t chunk_rows = std::max<int64_t>(1, kChunkBytes / row_bytes);
  for (int64_t row = begin; row < end; row += chunk_rows) {
    const int64_t rows = std::min(chunk_rows, end - row);
    auto shape = entry.info.shape;
    if (!scalar) shape[0] = rows;
    auto chunk = at::empty(shape, scalar_type(entry.info.type));
    open.file.read(open.header.data_begin + entry.begin + row * row_bytes, bytes_of(chunk));
    for (size_t d = 1; d < shape.size(); ++d) {
      chunk = chunk.narrow(static_cast<int64_t>(d), piece.global.begin[d], piece.global.end[d] - piece.global.begin[d]);
    }
    (scalar ? target : target.narrow(0, row - begin, rows)).copy_(chunk);
  }
}

// The digest of bytes begin .. end of the file, of the same kind as `said`.
NamedDigest hashed(const CheckedFile& file, int64_t begin, int64_t end, const NamedDigest& said) {
  Digest digest(said.kind);
  std::vector<std::byte> chunk(static_cast<size_t>(std::min(kChunkBytes, end - begin)));
  for (int64_t at = begin; at < end; at += kChunkBytes) {
    const auto part = std::span(chunk).first(static_cast<size_t>(std::min(kChunkBytes, end - at)));
    file.read(at, part);
    digest.add(part);
  }
  return digest.named();
}

// Says which tensor is at fault where it can.
[[noreturn]] void throw_changed(const OpenFile& open, const Manifest& manifest) {
  for (const auto& entry : open.header.tensors) {
    const int64_t begin = open.header.data_begin + entry.begin, end = open.header.data_begin + entry.end;
    const NamedDigest said = manifest.tensors.at(entry.info.name).hash, found = hashed(open.file, begin, end, said);
    if (found != said) {
      throw IoError(open.file.path(), begin,
                    cat("tensor ", entry.info.name, " has ", text(found), "; the manifest says ", hex(said.value),
                        ": its bytes were changed"));
    }
  }
  throw IoError(open.file.path(), 0, "the digest of the file is not the manifest's: its header was changed");
}

void verify_plain(const std::string& path, const ManifestFile& said) {
  const CheckedFile file(path);
  check_size(file, said.bytes);
  const NamedDigest found = hashed(file, 0, file.bytes(), said.hash);
  if (found != said.hash) {
    throw IoError(path, 0, cat("has ", text(found), "; the manifest says ", hex(said.hash.value), ": it was changed"));
  }
}

}  // namespace

CheckpointInfo read_checkpoint_info(const std::string& directory) {
  return read_manifest(found_directory(directory)).info;
}

std::string tokenizer_folder(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  bool any = false;
  for (const auto& [name, said] : manifest.files) {
    if (holds_tensors(name)) continue;
    verify_plain(found + "/" + name, said);
    any = true;
  }
  return any ? found : "";
}

void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  auto problems = differences(manifest, tensors);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  std::map<std::string, std::unique_ptr<OpenFile>> files;
  for (const auto& tensor : tensors) {
    auto& file = files[manifest.tensors.at(tensor.name).file];
    if (!file) file = opened(found, manifest, manifest.tensors.at(tensor.name).file);
  }
  for (const auto& [name, placement, local] : tensors) {
    const OpenFile& open = *files.at(manifest.tensors.at(name).file);
    for (const auto& piece : placement.pieces) read_piece(open, open.tensors.at(name), piece, local);
  }
}

void verify_checkpoint(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  for (const auto& [name, said] : manifest.files) {
    if (!holds_tensors(name)) {
      verify_plain(found + "/" + name, said);
      continue;
    }
    const auto open = opened(found, manifest, name);
    if (hashed(open->file, 0, open->file.bytes(), said.hash) != said.hash) throw_changed(*open, manifest);
  }
}

}  // namespace braid
