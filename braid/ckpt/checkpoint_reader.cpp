// Boxes of files into boxes of tensors.
#include "braid/ckpt/checkpoint_reader.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <map>
#include <set>

#include "braid/ckpt/parallel_reads.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr int64_t kChunkBytes = 16 << 20;

}  // namespace

CheckpointReader::CheckpointReader(const std::string& directory)
    : reading_(directory),
      folder_(found_directory(directory)),
      manifest_(read_manifest(folder_)),
      files_(folder_, manifest_) {}

void CheckpointReader::verify() {
  for (const auto& [name, said] : manifest_.files) files_.verify(name);
}

// Of a tensor without elements nothing is read, and its file is looked at all the same.
void CheckpointReader::open_all(const std::vector<PlacedTensor>& tensors) {
  for (const PlacedTensor& tensor : tensors) {
    if (num_elements(tensor.placement.global_shape) > 0) continue;
    for (const ManifestBox& box : manifest_.tensors.at(tensor.name).boxes) files_.open(box.file);
  }
}

void CheckpointReader::verify(const std::vector<PlacedTensor>& tensors) {
  open_all(tensors);
  std::map<std::string, std::set<int64_t>> blocks;
  for (const BoxCopy& copy : plan_reshard(manifest_, tensors)) {
    const PlacedTensor& tensor = tensors[copy.target];
    const StoredRows rows = rows_read(copy, type_of(tensor));
    const int64_t begin = files_.begin_of(tensor.name, *copy.from);
    const ManifestFile& file = manifest_.files.at(copy.from->file);
    auto& touched = blocks[copy.from->file];
    if (file.block_bytes > kBlockBytes) continue;
    const int64_t last = (begin + rows.end * rows.bytes - 1) / file.block_bytes;
    for (int64_t block = (begin + rows.begin * rows.bytes) / file.block_bytes; block <= last; ++block) {
      touched.insert(block);
    }
  }
  for (const auto& [file, touched] : blocks) files_.verify(file, touched);
}

// Copies whose bytes go straight into their target are for any thread; the others compute with tensors, which is this
// thread's business.
void CheckpointReader::fill(const std::vector<PlacedTensor>& tensors) {
  const std::vector<BoxCopy> copies = plan_reshard(manifest_, tensors);
  std::vector<const BoxCopy*> straight;
  for (const BoxCopy& copy : copies) {
    files_.open(copy.from->file);
    if (goes_straight(tensors[copy.target], copy)) {
      straight.push_back(&copy);
    } else {
      fill(tensors[copy.target], copy);
    }
  }
  read_in_parallel(std::ssize(straight), [&](int64_t number) {
    const BoxCopy& copy = *straight[static_cast<size_t>(number)];
    const PlacedTensor& tensor = tensors[copy.target];
    const StoredRows rows = rows_read(copy, type_of(tensor));
    const int64_t begin = files_.begin_of(tensor.name, *copy.from) + rows.begin * rows.bytes;
    files_.open(copy.from->file).file.read(begin, bytes_of(part_of(tensor.local, copy.piece)));
  });
}

// Whether it wants all of its rows, one after another.
bool CheckpointReader::goes_straight(const PlacedTensor& tensor, const BoxCopy& copy) const {
  const auto part = part_of(tensor.local, copy.piece);
  const StoredRows rows = rows_read(copy, type_of(tensor));
  Index shape = extents(copy.from->box);
  if (!shape.empty()) shape[0] = rows.end - rows.begin;
  return part.sizes().equals(shape) && part.is_contiguous() && part.is_cpu();
}

// In chunks of bounded size, of which what is wanted is kept.
void CheckpointReader::fill(const PlacedTensor& tensor, const BoxCopy& copy) {
  const auto& [target, from, piece] = copy;
  const auto part = part_of(tensor.local, piece);
  const StoredRows rows = rows_read(copy, type_of(tensor));
  const int64_t begin = files_.begin_of(tensor.name, *from);
  const CheckedFile& file = files_.open(from->file).file;
  Index shape = extents(from->box);
  const int64_t step = std::max<int64_t>(1, kChunkBytes / rows.bytes);
  for (int64_t row = rows.begin; row < rows.end; row += step) {
    const int64_t count = std::min(step, rows.end - row);
    if (!shape.empty()) shape[0] = count;
    auto chunk = at::empty(shape, at::TensorOptions(scalar_type(type_of(tensor))));
    file.read(begin + row * rows.bytes, bytes_of(chunk));
    for (size_t d = 1; d < shape.size(); ++d) {
      chunk = chunk.narrow(static_cast<int64_t>(d), piece.global.begin[d] - from->box.begin[d],
                           piece.global.end[d] - piece.global.begin[d]);
    }
    (shape.empty() ? part : part.narrow(0, row - rows.begin, count)).copy_(chunk);
  }
}

at::Tensor CheckpointReader::read(const std::string& tensor, const Box& box) {
  const ManifestTensor& listed = manifest_.tensors.at(tensor);
  const Index shape = extents(box);
  const at::Tensor values = at::empty(shape, at::TensorOptions(scalar_type(listed.type)));
  fill({{tensor, {listed.shape, shape, {{box, Index(shape.size(), 0)}}, {}}, values}});
  return values;
}

}  // namespace braid
