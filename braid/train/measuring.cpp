// Tensors in memory of operator new, which the accounting allocator does not see.
#include "braid/train/measuring.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <memory>
#include <new>

#include "braid/base/host_facts.h"
#include "braid/comm/agree.h"
#include "braid/param/memory_account.h"

namespace braid::train {

namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

at::Tensor uncounted_tensor(at::IntArrayRef sizes, at::ScalarType dtype, at::Device device) {
  const auto options = at::TensorOptions(dtype).device(device);
  if (!device.is_cpu()) return at::empty(sizes, options);
  const auto elements = static_cast<size_t>(c10::multiply_integers(sizes));
  const size_t bytes = elements * c10::elementSize(dtype);
  const auto counted = std::make_shared<param::UncountedBytes>(static_cast<int64_t>(bytes));
  void* block = ::operator new(bytes, kAlignment);
  return at::from_blob(
      block, sizes, [counted](void* p) { ::operator delete(p, kAlignment); }, options);
}

bool has_memory_for(int64_t bytes, Communicator& ranks) {
  const int64_t available = available_memory_bytes();  // 0: unknown
  const bool fits = bytes <= param::bytes_left() && (available <= 0 || 2 * bytes * ranks.size() <= available);
  return comm::agree_all(ranks, "memory for a measurement", fits);
}

void wait_for(const at::Tensor& tensor) {
  if (!tensor.is_cpu()) tensor.view(-1).select(0, 0).item<double>();
}

}  // namespace braid::train
