// Block by block, several at once, each into memory that one thread has for all of its blocks.
#include "braid/ckpt/block_reads.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <set>

#include "braid/base/errors.h"
#include "braid/base/uncached_file.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

// Large blocks are read in parts, whose digests nobody has.
int64_t part_bytes(const ManifestFile& said) { return std::min(said.block_bytes, kBlockBytes); }

}  // namespace

BlockReads::BlockReads(CheckpointFiles& files, const Manifest& manifest, const std::vector<PlacedTensor>& tensors)
    : files_(files), manifest_(manifest) {
  for (const auto& [name, said] : manifest.files) {
    first_[name] = num_parts_;
    num_parts_ += (said.bytes + part_bytes(said) - 1) / part_bytes(said);
  }
  for (const PlacedTensor& tensor : tensors) {  // of one without elements nothing is read, and its file is looked at
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

at::Tensor BlockReads::wanted() const {
  const at::Tensor wanted = at::zeros({num_parts_}, at::kLong);
  for (const auto& [name, parts] : wanted_) {
    for (const auto& [number, part] : parts) wanted.data_ptr<int64_t>()[first_.at(name) + number] = 1;
  }
  return wanted;
}

void BlockReads::fill_compared(const at::Tensor& readers) {
  for (const auto& [name, parts] : wanted_) {
    const ManifestFile& said = manifest_.files.at(name);
    const int64_t* const counts = readers.const_data_ptr<int64_t>() + first_.at(name);
    const CheckedFile& cached = files_.open(name).file;
    const UncachedFile uncached(cached);
    for_each(name, [&](const Part& part, std::span<std::byte> memory) {
      const int64_t begin = part.number * part_bytes(said), end = std::min(said.bytes, begin + part_bytes(said));
      const auto bytes = memory.first(static_cast<size_t>(end - begin));
      counts[part.number] > 1 ? cached.read(begin, bytes) : uncached.read(begin, bytes);
      if (!has_large_blocks(said)) files_.compare(name, part.number, bytes);
      for (const BoxRuns* runs : part.runs) runs->copy(begin, bytes);
    });
  }
}

}  // namespace braid::ckpt
