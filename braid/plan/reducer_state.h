// The memory and the messages of gradient compression on a rank, computed from the sizes of tensors.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::plan {

struct GradientShape {
  double rows = 1, columns = 1;
  double held = 0;  // elements in memory, including padding
};

// The bytes of a compressed gradient.
struct ReducerBytes {
  double kept = 0;    // buffers on the rank
  double summed = 0;  // size of an uncompressed ring all-reduce that sends equally many bytes; 0 without compression

  bool operator==(const ReducerBytes&) const = default;
};

// Returns the bytes for one gradient that is all-reduced over `ranks` ranks (n). G is the size of the gradient in
// bytes: 4 for each element, or 8 in float64 runs. The residual is the compression error that the next step adds (error
// feedback).
//
//                              kept                                  summed
//   bfloat16, float16          the message                           2 for each element
//   top-k, one-bit, eight-bit  the residual (G), n messages          n/2 messages, as each rank sends to all others
//   power-sgd                  the residual (G), both factors of a   both factors of a matrix, or all of a gradient
//                              matrix and their messages, the        that factors do not make smaller
//                              directions of the last step
//
// A top-k message has 8 bytes for each element that is sent. A one-bit message has 1 bit for each element, and 8 bytes
// for each 1,024 elements. An eight-bit message has 1 byte for each element, and 4 bytes for each 1,024 elements.
//
// braid/sync/reducers allocates these tensors. sync.compression_start is ignored.
ReducerBytes reducer_bytes(const RunSpec& spec, const GradientShape& shape, int ranks);

}  // namespace braid::plan
