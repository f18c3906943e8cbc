// Its parts, put together.
#include "braid/ckpt/checkpoint_reader.h"

#include <ATen/ops/empty.h>

#include "braid/base/text.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

constexpr size_t kMaxSuggestions = 8;  // looking for the nearest name costs a comparison with every name

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
  for (const auto& [name, said] : manifest_.files) files_.verify(name);
}

void CheckpointReader::verify_large_blocks(int part, int parts) {
  int number = 0;
  for (const auto& [name, said] : manifest_.files) {
    if (has_large_blocks(said) && number++ % parts == part) files_.verify(name);
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
