// Compares names first, then values in chunks of rows.
#include "braid/ckpt/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "braid/ckpt/tensor_bytes.h"

namespace braid::ckpt {
namespace {

using Kind = TensorDifference::Kind;

constexpr int64_t kComparedBytes = 16 << 20;

// Views the values as integers of the same size, since equal integers have equal bits.
at::Tensor bits_of(const at::Tensor& values) {
  switch (values.element_size()) {
    case 1:
      return values.view(at::kByte);
    case 2:
      return values.view(at::kShort);
    case 4:
      return values.view(at::kInt);
    default:
      return values.view(at::kLong);
  }
}

void add_values(TensorDifference& found, const at::Tensor& a, const at::Tensor& b) {
  const auto x = bytes_of(a), y = bytes_of(b);
  if (x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0) return;
  found.elements += bits_of(a.flatten()).ne(bits_of(b.flatten())).sum().item<int64_t>();
  const double largest = a.to(at::kDouble).sub(b.to(at::kDouble)).abs().max().item<double>();
  if (std::isnan(largest) || largest > found.largest) found.largest = largest;
}

TensorDifference compared_values(const std::string& name, const ManifestTensor& tensor, CheckpointReader& first,
                                 CheckpointReader& second) {
  TensorDifference found{name};
  mesh::Box box{mesh::Index(tensor.shape.size(), 0), tensor.shape};
  if (box.empty()) return found;
  const int64_t rows = tensor.shape.empty() ? 1 : tensor.shape[0];
  const int64_t row_bytes = box.num_elements() / rows * bytes_per_element(tensor.type);
  const int64_t step = std::max<int64_t>(1, kComparedBytes / row_bytes);
  for (int64_t row = 0; row < rows; row += step) {
    if (!tensor.shape.empty()) {
      box.begin[0] = row;
      box.end[0] = std::min(rows, row + step);
    }
    add_values(found, first.read(name, box), second.read(name, box));
  }
  return found;
}

}  // namespace

std::vector<TensorDifference> compared(CheckpointReader& first, CheckpointReader& second) {
  const auto &ours = first.manifest().tensors, &theirs = second.manifest().tensors;
  std::vector<TensorDifference> found;
  for (const auto& [name, tensor] : ours) {
    const auto other = theirs.find(name);
    if (other == theirs.end()) {
      found.push_back({name, Kind::OnlyInFirst});
    } else if (tensor.type != other->second.type || tensor.shape != other->second.shape) {
      found.push_back(
          {name, Kind::Shape, drawn(tensor.type, tensor.shape), drawn(other->second.type, other->second.shape)});
    } else if (TensorDifference values = compared_values(name, tensor, first, second); values.elements > 0) {
      found.push_back(std::move(values));
    }
  }
  for (const auto& [name, tensor] : theirs) {
    if (!ours.contains(name)) found.push_back({name, Kind::OnlyInSecond});
  }
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

}  // namespace braid::ckpt
