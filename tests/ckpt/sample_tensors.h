// A small model's tensors as the ranks of any mesh hold them, with values that say which element they are.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "braid/ckpt/checkpoint.h"
#include "braid/mesh/device_mesh.h"

namespace braid {

inline constexpr double kPadding = -7;  // what local elements outside every piece hold

struct SampleTensors {
  std::vector<ckpt::PlacedTensor> wanted;  // with the values of the model
  std::vector<ckpt::PlacedTensor> blank;   // the same places, everything kPadding
};

// Replicated, padded, split in dim 0 and 1, segmented, scalar and empty tensors of every element type; a tied tensor on
// the first and last stage; blocks spread over the pipe axis. `seed` chooses the values.
SampleTensors sample_tensors(const mesh::DeviceMesh& mesh, int rank, uint64_t seed = 1);

// Every mesh of data x pipe x tensor with at most `max_ranks` ranks.
std::vector<MeshSpec> meshes_up_to(int max_ranks);

// Bit for bit, padding included.
bool equal_bits(const at::Tensor& a, const at::Tensor& b);

}  // namespace braid
