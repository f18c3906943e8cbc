// Takes a block more than is asked for from LibTorch's allocator, and begins at the first whole one.
#include "braid/param/block_memory.h"

#include <ATen/EmptyTensor.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include <cstring>
#include <memory>

#include "braid/disk/disk.h"

namespace braid::param {
namespace {

void free_whole(void* whole) { delete static_cast<c10::DataPtr*>(whole); }

class BlockAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const c10::Device cpu(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, cpu};
    size_t space = bytes + disk::kBlockBytes;
    auto whole = std::make_unique<c10::DataPtr>(c10::GetCPUAllocator()->allocate(space));
    void* begin = whole->get();
    std::align(disk::kBlockBytes, bytes, begin, space);
    return {begin, whole.release(), &free_whole, cpu};
  }
  void copy_data(void* to, const void* from, size_t bytes) const override { std::memcpy(to, from, bytes); }
};

}  // namespace

at::Tensor empty_on_blocks(int64_t length, at::ScalarType type) {
  static BlockAllocator allocator;
  return at::detail::empty_generic({length}, &allocator, c10::DispatchKeySet(c10::DispatchKey::CPU), type,
                                   std::nullopt);
}

int64_t bytes_on_blocks(const at::Tensor& flat) {
  return static_cast<int64_t>(flat.nbytes()) + (flat.numel() > 0 ? disk::kBlockBytes : 0);
}

std::span<std::byte> bytes_of(const at::Tensor& flat) {
  return {static_cast<std::byte*>(flat.mutable_data_ptr()), flat.nbytes()};
}

}  // namespace braid::param
