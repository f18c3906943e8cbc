// Reading a checkpoint: everything is compared before anything is written; then each box is read by its rows.
// It knows no ranks: it reads the boxes it is asked for.
#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/ckpt/checkpoint_files.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/reshard.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr int64_t kChunkBytes = 16 << 20;
constexpr size_t kMaxSuggestions = 8;  // looking for the nearest name costs a comparison with every name

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

// The copies that fill a rank's tensors, and the files they are made from.
class Reading {
 public:
  Reading(const std::string& folder, const Manifest& manifest, const std::vector<PlacedTensor>& tensors)
      : manifest_(manifest), tensors_(tensors), files_(folder, manifest), copies_(plan_reshard(manifest, tensors)) {
    for (const PlacedTensor& tensor : tensors) {  // those of which nothing is wanted too
      for (const ManifestBox& box : manifest.tensors.at(tensor.name).boxes) {
        if (num_elements(tensor.placement.global_shape) == 0) files_.open(box.file);
      }
    }
  }

  // The blocks that the copies touch. Where a file is one block, that is all of it, and it is left to whoever verifies
  // the checkpoint.
  void verify() {
    std::map<std::string, std::set<int64_t>> blocks;
    for (const BoxCopy& copy : copies_) {
      const StoredRows rows = rows_read(copy, type_of_copy(copy));
      const int64_t begin = begin_of(copy);
      const ManifestFile& file = manifest_.files.at(copy.from->file);
      auto& touched = blocks[copy.from->file];
      if (file.block_bytes > kBlockBytes) continue;
      const int64_t last = (begin + rows.end * rows.bytes - 1) / file.block_bytes;
      for (int64_t block = (begin + rows.begin * rows.bytes) / file.block_bytes; block <= last; ++block)
        touched.insert(block);
    }
    for (const auto& [file, touched] : blocks) files_.verify(file, touched);
  }
  void fill() {
    for (const BoxCopy& copy : copies_) fill(copy);
  }

 private:
  ElementType type_of_copy(const BoxCopy& copy) const { return manifest_.tensors.at(tensors_[copy.target].name).type; }
  int64_t begin_of(const BoxCopy& copy) { return files_.begin_of(tensors_[copy.target].name, *copy.from); }

  // In chunks of bounded size, of which what is wanted is kept; straight into the target where it wants all of them
  // one after another.
  void fill(const BoxCopy& copy) {
    const auto& [target, from, piece] = copy;
    const auto part = part_of(tensors_[target].local, piece);
    const StoredRows rows = rows_read(copy, type_of_copy(copy));
    const int64_t begin = begin_of(copy);
    const CheckedFile& file = files_.open(from->file).file;
    Index shape = extents(from->box);
    if (!shape.empty()) shape[0] = rows.end - rows.begin;
    if (part.sizes().equals(shape) && part.is_contiguous() && part.is_cpu()) {
      file.read(begin + rows.begin * rows.bytes, bytes_of(part));
      return;
    }
    const int64_t step = std::max<int64_t>(1, kChunkBytes / rows.bytes);
    for (int64_t row = rows.begin; row < rows.end; row += step) {
      const int64_t count = std::min(step, rows.end - row);
      shape[0] = count;  // what has no dims is contiguous
      auto chunk = at::empty(shape, at::TensorOptions(scalar_type(type_of_copy(copy))));
      file.read(begin + row * rows.bytes, bytes_of(chunk));
      for (size_t d = 1; d < shape.size(); ++d) {
        chunk = chunk.narrow(static_cast<int64_t>(d), piece.global.begin[d] - from->box.begin[d],
                             piece.global.end[d] - piece.global.begin[d]);
      }
      part.narrow(0, row - rows.begin, count).copy_(chunk);
    }
  }

  const Manifest& manifest_;
  const std::vector<PlacedTensor>& tensors_;
  CheckpointFiles files_;
  std::vector<BoxCopy> copies_;
};

}  // namespace

CheckpointInfo read_checkpoint_info(const std::string& directory) {
  return read_manifest(found_directory(directory)).info;
}

std::string tokenizer_folder(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  CheckpointFiles files(found, manifest);
  bool any = false;
  for (const auto& [name, said] : manifest.files) {
    if (holds_tensors(name)) continue;
    files.verify(name);
    any = true;
  }
  return any ? found : "";
}

void load_checkpoint(const std::string& directory, const std::vector<PlacedTensor>& tensors) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  auto problems = differences(manifest, tensors);
  if (!problems.empty()) throw ConfigError(std::move(problems));
  Reading reading(found, manifest, tensors);
  reading.verify();
  reading.fill();
}

void verify_checkpoint(const std::string& directory) {
  const std::string found = found_directory(directory);
  const Manifest manifest = read_manifest(found);
  CheckpointFiles files(found, manifest);
  for (const auto& [name, said] : manifest.files) files.verify(name);
}

}  // namespace braid
