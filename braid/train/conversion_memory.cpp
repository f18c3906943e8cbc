#include "braid/train/conversion_memory.h"

#include <ATen/ops/zeros.h>

#include <memory>

#include "braid/disk/aligned_buffer.h"
#include "braid/param/memory_account.h"

namespace braid::train {

std::vector<at::Tensor> conversion_memory(const std::vector<FlatShape>& shapes,
                                          const std::optional<param::DiskSpace>& space) {
  int64_t bytes = 0;
  for (const auto& [length, type] : shapes) {
    bytes += disk::whole_blocks(length * static_cast<int64_t>(c10::elementSize(type)));
  }
  std::shared_ptr<param::DiskTensors> on_disk;
  if (space && bytes > 0) on_disk = std::make_shared<param::DiskTensors>(*space, bytes);
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  std::vector<at::Tensor> tensors;
  for (const auto& [length, type] : shapes) {
    tensors.push_back(on_disk ? on_disk->zeros(length, type, param::MemoryCategory::Optimizer)
                              : at::zeros({length}, type));
  }
  return tensors;
}

}  // namespace braid::train
