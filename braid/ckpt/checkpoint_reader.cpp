// Reads and verifies the parts of blocks that tensors need.
#include "braid/ckpt/checkpoint_reader.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>
#include <vector>

#include "braid/base/direct_files.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

// Large blocks are read in parts, for which the manifest has no digests.
int64_t part_bytes(const ManifestFile& listed) { return std::min(listed.block_bytes, kBlockBytes); }

}  // namespace

BlockReads::BlockReads(CheckpointFiles& files, const Manifest& manifest, const std::vector<PlacedTensor>& tensors)
    : files_(files), manifest_(manifest) {
  for (const auto& [name, listed] : manifest.files) {
    first_[name] = num_parts_;
    num_parts_ += (listed.bytes + part_bytes(listed) - 1) / part_bytes(listed);
  }
  for (const PlacedTensor& tensor : tensors) {  // of an empty tensor no bytes are read, only its file is checked
    if (mesh::num_elements(tensor.placement.global_shape) > 0) continue;
    for (const ManifestBox& box : manifest.tensors.at(tensor.name).boxes) files.open(box.file);
  }
  for (const BoxCopy& copy : plan_reshard(manifest, tensors)) {
    const auto& [name, placement, local] = tensors[copy.target];
    const ElementType type = manifest.tensors.at(name).type;
    fillable_ = fillable_ && local.is_cpu() && local.scalar_type() == scalar_type(type);
    const BoxRuns::Stored stored{files.begin_of(name, *copy.from), bytes_per_element(type)};
    want(runs_.emplace_back(copy, stored, local), copy.from->file);
  }
}

void BlockReads::want(const BoxRuns& runs, const std::string& file) {
  const int64_t bytes = part_bytes(manifest_.files.at(file)), end = runs.end();
  for (int64_t number = runs.begin() / bytes; number * bytes < end; ++number) {
    const int64_t first = std::max(runs.begin(), number * bytes), last = std::min(end, (number + 1) * bytes);
    Part& part = wanted_[file].try_emplace(number, Part{number, first, last, {}}).first->second;
    part.begin = std::min(part.begin, first);
    part.end = std::max(part.end, last);
    part.runs.push_back(&runs);
  }
}

void BlockReads::verify() {
  for (const auto& [file, parts] : wanted_) {
    if (has_large_blocks(manifest_.files.at(file))) continue;
    std::set<int64_t> blocks;
    for (const auto& [number, part] : parts) blocks.insert(number);
    files_.verify(file, blocks);
  }
}

void BlockReads::for_each(const std::string& file,
                          const std::function<void(const Part& part, std::span<std::byte> memory)>& read) {
  check(fillable_, "tensors are read on the host, in the type of the file");
  std::vector<const Part*> parts;
  for (const auto& [number, part] : wanted_.at(file)) parts.push_back(&part);
  read_in_parallel(std::ssize(parts),
                   [&](int64_t i, int reader) { read(*parts[static_cast<size_t>(i)], files_.memory_of(reader)); });
}

void BlockReads::fill() {
  for (const auto& [name, parts] : wanted_) {
    const CheckedFile& file = files_.open(name).file;
    for_each(name, [&](const Part& part, std::span<std::byte> memory) {
      const auto bytes = memory.first(static_cast<size_t>(part.end - part.begin));
      file.read(part.begin, bytes);
      for (const BoxRuns* runs : part.runs) runs->copy(part.begin, bytes);
    });
  }
}

std::vector<int64_t> BlockReads::wanted() const {
  std::vector<int64_t> wanted(static_cast<size_t>(num_parts_));
  for (const auto& [name, parts] : wanted_) {
    for (const auto& [number, part] : parts) wanted[static_cast<size_t>(first_.at(name) + number)] = 1;
  }
  return wanted;
}

void BlockReads::fill_compared(const std::vector<int64_t>& readers) {
  for (const auto& [name, parts] : wanted_) {
    const ManifestFile& listed = manifest_.files.at(name);
    const int64_t* const counts = readers.data() + first_.at(name);
    const CheckedFile& cached = files_.open(name).file;
    const UncachedFile uncached(cached);
    for_each(name, [&](const Part& part, std::span<std::byte> memory) {
      const int64_t begin = part.number * part_bytes(listed), end = std::min(listed.bytes, begin + part_bytes(listed));
      const auto bytes = memory.first(static_cast<size_t>(end - begin));
      counts[part.number] > 1 ? cached.read(begin, bytes) : uncached.read(begin, bytes);
      if (!has_large_blocks(listed)) files_.compare(name, part.number, bytes);
      for (const BoxRuns* runs : part.runs) runs->copy(begin, bytes);
    });
  }
}

namespace {

constexpr size_t kMaxSuggestions = 8;  // finding the nearest name takes a comparison with every name

}  // namespace

CheckpointReader::CheckpointReader(const std::string& directory)
    : reading_(directory),
      folder_(found_directory(directory)),
      manifest_(read_manifest(folder_)),
      files_(folder_, manifest_) {}

std::vector<Problem> CheckpointReader::differences(const std::vector<PlacedTensor>& tensors) const {
  std::vector<Problem> problems;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : manifest_.tensors) names.push_back(name);
  for (const auto& [name, placement, local] : tensors) {
    const auto found = manifest_.tensors.find(name);
    const ElementType type = element_type(local.scalar_type());
    if (found == manifest_.tensors.end()) {
      const bool suggest = problems.size() < kMaxSuggestions;
      problems.push_back({name, "", "is not in the checkpoint", suggest ? nearest(name, names) : ""});
    } else if (found->second.shape != placement.global_shape || found->second.type != type) {
      problems.push_back({name, drawn(found->second.type, found->second.shape),
                          cat("in the checkpoint; this run needs ", drawn(type, placement.global_shape)), ""});
    }
  }
  return problems;
}

void CheckpointReader::verify() {
  for (const auto& [name, listed] : manifest_.files) files_.verify(name);
}

void CheckpointReader::verify_large_blocks(int part, int parts) {
  int number = 0;
  for (const auto& [name, listed] : manifest_.files) {
    if (has_large_blocks(listed) && number++ % parts == part) files_.verify(name);
  }
}

at::Tensor CheckpointReader::read(const std::string& tensor, const mesh::Box& box) {
  const ManifestTensor& listed = manifest_.tensors.at(tensor);
  const mesh::Index shape = extents(box);
  const at::Tensor values = at::empty(shape, at::TensorOptions(scalar_type(listed.type)));
  reads_of({{tensor, {listed.shape, shape, {{box, mesh::Index(shape.size(), 0)}}, {}}, values}}).fill();
  return values;
}

}  // namespace braid::ckpt
