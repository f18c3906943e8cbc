// Sharding of parameters, gradients and optimizer states over ranks that would otherwise hold copies (ZeRO: Rajbhandari
// et al. 2020, section 5). All three are sharded alike, unit by unit, so a rank has the gradients and states of the
// elements that it updates.
//
//   flat buffer     | wte           | blocks.0          | blocks.1          | ln_f |
//   units           |---------------|-------------------|-------------------|------|      each a multiple of parts
//   of part 1 of 3  |    |xxxx|     |     |xxxxxx|      |     |xxxxxx|      |  |x| |      blocks of kAlign elements
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace braid::param {

// The ZeRO stages 0 to 3. Each shards what those before it do, and one thing more.
enum class Sharded { Nothing, Optimizer, Gradients, Parameters };

struct Sharding {
  Sharded what = Sharded::Nothing;
  int part = 0, parts = 1;  // this rank holds part `part` of `parts` equal ones of every unit
};

// Neighbouring whole parameters that are gathered and scattered at once: those of one block that are not tied, or one
// tied parameter, so that both of its places are cut alike.
struct ShardUnit {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int first_param = 0, num_params = 0;

  int64_t length() const { return end - begin; }
};

// A stretch of the flat buffers whose masters this rank updates. Tensors are 1-D and of one length.
struct OwnedRange {
  int64_t begin = 0, end = 0;  // elements of the flat buffers
  int64_t place = 0;           // index of its first element when all owned ranges are laid one after another
  at::Tensor master;
  at::Tensor data;  // the same memory as `master` where their types are the same
  at::Tensor grad;

  int64_t length() const { return end - begin; }
};

}  // namespace braid::param
