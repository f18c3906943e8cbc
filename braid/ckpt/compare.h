// Compares the tensors of two checkpoints, however they are split into files. Holds a few rows of one tensor of each in
// memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "braid/ckpt/checkpoint_reader.h"

namespace braid::ckpt {

struct TensorDifference {
  enum class Kind { OnlyInFirst, OnlyInSecond, Shape, Values };

  std::string name;
  Kind kind = Kind::Values;
  std::string first, second;  // Shape: types and shapes, "F32 [3, 4]"
  int64_t elements = 0;       // Values: whose bits differ
  double largest = 0;         // Values: the largest absolute difference; NaN where either has one
};

// By name; nothing for tensors that are equal bit for bit. Throws IoError.
std::vector<TensorDifference> compared(CheckpointReader& first, CheckpointReader& second);

}  // namespace braid::ckpt
