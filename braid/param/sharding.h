// The sharding of flat buffers: ZeRO stages, units, and the ranges that a rank owns.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::param {

// The ZeRO stages 0 to 3: sharding of parameters, gradients and optimizer states over ranks that would otherwise hold
// copies (Rajbhandari et al. 2020, section 5). Each stage shards one thing more than the stage before it. All three are
// sharded in the same way, unit by unit, so a rank has the gradients and states of the elements that it updates.
//
//   flat buffer     | wte           | blocks.0          | blocks.1          | ln_f |
//   units           |---------------|-------------------|-------------------|------|      each a multiple of parts
//   of part 1 of 3  |    |xxxx|     |     |xxxxxx|      |     |xxxxxx|      |  |x| |      blocks of kAlign elements
enum class Sharded { Nothing, Optimizer, Gradients, Parameters };

struct Sharding {
  Sharded what = Sharded::Nothing;
  int part = 0, parts = 1;  // this rank holds part `part` of the `parts` equal parts of every unit
};

// Neighbouring whole parameters that are gathered and scattered together. A unit consists of the parameters of one
// block that are not tied, or of one tied parameter, so that both of its uses are sharded in the same way.
struct ShardUnit {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int first_param = 0, num_params = 0;

  int64_t length() const { return end - begin; }
};

// A range of the flat buffers whose masters this rank updates. The tensors are 1-D and of equal length.
struct OwnedRange {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int64_t place = 0;           // index of the first element if all owned ranges are laid out one after another
  at::Tensor master;
  at::Tensor data;  // the same memory as `master` if their types are equal
  at::Tensor grad;

  int64_t length() const { return end - begin; }
};

}  // namespace braid::param
