// The state and messages of gradient compression on a rank, from the sizes of tensors.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::plan {

struct GradientShape {
  double rows = 1, columns = 1;
  double held = 0;  // elements in memory, with the gap behind them
};

// Bytes.
struct ReducerBytes {
  double kept = 0;
  double summed = 0;  // a ring that sums so many sends as much; of gradients that are not compressed not said

  bool operator==(const ReducerBytes&) const = default;
};

// Returns the bytes for one gradient that is all-reduced over `ranks`, n; G bytes of the gradient, 4 or 8 for each
// element:
//
//                              kept                                  summed
//   bfloat16, float16          the message                           2 for each element
//   top-k, one-bit, eight-bit  G of what is owed, and n messages     n/2 messages: all go to all. 8 of each element
//   that
//                                                                    is told; of each 1,024 elements 8 and a bit of
//                                                                    each, or 4 and a byte of each
//   power-sgd                  G of what is owed, both factors of a  both factors; of what is no matrix all of it
//                              matrix and their messages, the
//                              directions of the last step
//
// braid/sync/reducers has the tensors. Without regard to mesh.ranks_per_node and sync.compression_start.
ReducerBytes reducer_bytes(const RunSpec& spec, const GradientShape& shape, int ranks);

}  // namespace braid::plan
