// Writes rows in chunks of 16 MiB. Each byte enters two digests: that of its block of the file and that of its box.
#include "braid/ckpt/shard_writer.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <memory>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

constexpr int64_t kRowsBytes = 16 << 20;

class DigestedFile {
 public:
  DigestedFile(const std::string& path, FileSystem& files) : file_(files.create(path)) {}

  void write(std::span<const std::byte> bytes) {
    file_->append(bytes);
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), static_cast<size_t>(kBlockBytes - in_block_)));
      block_.add(part);
      in_block_ += static_cast<int64_t>(part.size());
      entry_.bytes += static_cast<int64_t>(part.size());
      bytes = bytes.subspan(part.size());
      if (in_block_ == kBlockBytes) end_block();
    }
  }
  ManifestFile close() {
    if (in_block_ > 0) end_block();
    file_->sync();
    file_->close();
    return std::move(entry_);
  }

 private:
  void end_block() {
    entry_.blocks.push_back(block_.named());
    block_ = Digest(DigestKind::Xxh3);
    in_block_ = 0;
  }

  std::unique_ptr<WritableFile> file_;
  ManifestFile entry_;
  Digest block_{DigestKind::Xxh3};
  int64_t in_block_ = 0;
};

// Writes the box and returns its digest.
NamedDigest write_box(DigestedFile& file, const PlannedBox& planned, const BoxRows& rows) {
  Digest digest(DigestKind::Xxh3);
  const int64_t count = planned.box.begin.empty() ? 1 : planned.box.end[0] - planned.box.begin[0];
  const int64_t elements = planned.box.num_elements();
  if (elements == 0) return digest.named();
  const int64_t row_bytes = elements / count * bytes_per_element(planned.tensor.type);
  const int64_t step = std::max<int64_t>(1, kRowsBytes / row_bytes);
  for (int64_t row = 0; row < count; row += step) {
    const int64_t end = std::min(count, row + step);
    const at::Tensor values = rows(planned, row, end);
    check(values.numel() * count == elements * (end - row) && element_type(values.scalar_type()) == planned.tensor.type,
          cat("rows of tensor ", planned.tensor.name, " are of its shape and type"));
    digest.add(bytes_of(values));
    file.write(bytes_of(values));
  }
  return digest.named();
}

// Returns index + (to - from).
mesh::Index moved(mesh::Index index, const mesh::Index& from, const mesh::Index& to) {
  for (size_t d = 0; d < index.size(); ++d) index[d] += to[d] - from[d];
  return index;
}

}  // namespace

HeldTensors::HeldTensors(const std::vector<PlacedTensor>& tensors) {
  for (const PlacedTensor& tensor : tensors) by_name_[tensor.name].push_back(&tensor);
}

std::vector<HeldTensors::Part> HeldTensors::parts(const std::string& name, const mesh::Box& box) const {
  const auto holders = by_name_.find(name);
  check(holders != by_name_.end(), cat("a rank writes tensors that it holds; it has no ", name));
  std::vector<Part> parts;
  int64_t left = box.num_elements();
  for (const PlacedTensor* tensor : holders->second) {
    for (const mesh::Piece& piece : tensor->placement.pieces) {
      const mesh::Box part = mesh::intersection(piece.global, box);
      if (part.empty()) continue;
      const mesh::Piece in_local{part, moved(piece.local_begin, piece.global.begin, part.begin)};
      const mesh::Piece in_box{part, moved(mesh::Index(part.begin.size(), 0), box.begin, part.begin)};
      const at::Tensor values = part_of(tensor->local, in_local);
      if (part == box) return {{values, in_box}};
      parts.push_back({values, in_box});
      left -= part.num_elements();
    }
  }
  check(left == 0, cat("a rank writes boxes that it holds; it has not all of one of ", name));
  return parts;
}

BoxRows rows_of(const std::vector<PlacedTensor>& tensors) {
  return [held = HeldTensors(tensors)](const PlannedBox& planned, int64_t begin, int64_t end) {
    mesh::Box box = planned.box;
    if (!box.begin.empty()) {
      box.end[0] = box.begin[0] + end;
      box.begin[0] += begin;
    }
    const auto parts = held.parts(planned.tensor.name, box);
    if (parts.size() == 1) return parts[0].values.cpu().contiguous();
    const at::Tensor rows = at::empty(extents(box), at::TensorOptions(scalar_type(planned.tensor.type)));
    for (const auto& [values, in_box] : parts) part_of(rows, in_box).copy_(values);
    return rows;
  };
}

ManifestParts write_shard(const std::string& folder, const Shard& shard, const BoxRows& rows, FileSystem& files) {
  ManifestParts parts;
  for (const ShardFile& planned : shard.files) {
    DigestedFile file(cat(folder, "/", planned.name), files);
    const std::string header = header_bytes(planned.entries, {{"format", "braid"}});
    file.write(std::as_bytes(std::span(header)));
    for (const PlannedBox& box : planned.boxes) {
      ManifestTensor& tensor = parts.tensors[box.tensor.name];
      tensor.type = box.tensor.type;
      tensor.shape = box.tensor.shape;
      tensor.boxes.push_back({planned.name, box.box, write_box(file, box, rows)});
    }
    parts.files[planned.name] = file.close();
  }
  return parts;
}

ManifestFile write_plain(const std::string& path, std::string_view content, FileSystem& files) {
  DigestedFile file(path, files);
  file.write(std::as_bytes(std::span(content)));
  return file.close();
}

}  // namespace braid::ckpt
