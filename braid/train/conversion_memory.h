// Memory for tensors that a checkpoint has in another type than the run: they are read into it and converted.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "braid/param/disk_tensors.h"

namespace braid::train {

struct FlatShape {
  int64_t length;
  at::ScalarType type;
};

// Returns 1-D tensors of zeros: in a new file in the folders of `space`, because they may be larger than the memory of
// the rank, or in memory without one. Throws ConfigError with all that is wrong with the folders.
std::vector<at::Tensor> conversion_memory(const std::vector<FlatShape>& shapes,
                                          const std::optional<param::DiskSpace>& space);

}  // namespace braid::train
