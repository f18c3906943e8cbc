// Boxes one after another, each aligned.
#include "braid/ckpt/snapshot.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/isfinite.h>
#include <c10/core/GradMode.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/ckpt/manifest.h"
#include "braid/ckpt/tensor_bytes.h"

namespace braid {
namespace {

constexpr int64_t kAlign = 64;

int64_t place_bytes(const PlannedBox& planned) {
  const int64_t bytes = planned.box.num_elements() * bytes_per_element(planned.tensor.type);
  return (bytes + kAlign - 1) / kAlign * kAlign;
}

}  // namespace

int64_t Snapshot::bytes_of(const Shard& shard) {
  int64_t bytes = 0;
  for (const ShardFile& file : shard.files) {
    for (const PlannedBox& planned : file.boxes) bytes += place_bytes(planned);
  }
  return bytes;
}

Snapshot::Snapshot(const Shard& shard) : shard_(shard), memory_(at::empty({bytes_of(shard)}, at::kByte)) {
  memory_.zero_();
  int64_t place = 0;
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      places_[{planned.tensor.name, planned.box.begin}] = place;
      place += place_bytes(planned);
    }
  }
}

at::Tensor Snapshot::values(const PlannedBox& planned) const {
  const auto place = places_.find({planned.tensor.name, planned.box.begin});
  check(place != places_.end(), "a snapshot has the boxes of its shard");
  std::byte* const begin = braid::bytes_of(memory_).data() + place->second;
  const Index shape = planned.box.begin.empty() ? Index() : extents(planned.box);
  return at::from_blob(begin, shape, at::TensorOptions(scalar_type(planned.tensor.type)));
}

void Snapshot::take(const std::vector<PlacedTensor>& tensors) {
  const BoxRows live = rows_of(tensors);
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      if (planned.box.num_elements() == 0) continue;
      const int64_t rows = planned.box.begin.empty() ? 1 : planned.box.end[0] - planned.box.begin[0];
      values(planned).copy_(live(planned, 0, rows));
    }
  }
}

// A sum is not finite where a value is not; one that overflows by itself is looked at closely.
std::string Snapshot::weight_not_finite() const {
  const c10::AutoGradMode no_grad(false);
  for (const ShardFile& file : shard_.files) {
    for (const PlannedBox& planned : file.boxes) {
      if (planned.tensor.name.find('/') != std::string::npos) continue;
      const at::Tensor own = values(planned);
      if (!own.is_floating_point() || std::isfinite(own.sum().item<double>())) continue;
      if (!own.isfinite().all().item<bool>()) return planned.tensor.name;
    }
  }
  return "";
}

BoxRows Snapshot::rows() const {
  return [this](const PlannedBox& planned, int64_t begin, int64_t end) {
    const at::Tensor all = values(planned);
    return all.dim() == 0 ? all : all.narrow(0, begin, end - begin);
  };
}

}  // namespace braid
