// Compares the tensors of two checkpoints, however they are split into files. Holds only a few rows of one tensor of
// each checkpoint in memory.
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
  int64_t elements = 0;       // Values: number of elements whose bits differ
  double largest = 0;         // Values: the largest absolute difference; NaN if any is NaN
};

// Returns the differences, sorted by name; none for tensors that are equal bit for bit. Throws IoError.
std::vector<TensorDifference> compared(CheckpointReader& first, CheckpointReader& second);

}  // namespace braid::ckpt
