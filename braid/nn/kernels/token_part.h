// The tokens of each sequence that a tensor has, under sequence parallelism.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace braid::kernels {

// Part `number` of `count` equal parts.
struct TokenPart {
  int64_t number = 0, count = 1;
};

// Neighbouring elements of a tensor [.., t, c] that has a part of the tokens: `count` elements from `local` on, which
// are those from `begin` on of the tensor with all tokens.
struct TokenStretch {
  int64_t local, begin, count;
};
// Calls `body` for each stretch: one for each sequence, or one for all if the part is the whole.
template <class Body>
void for_each_stretch(at::IntArrayRef sizes, const TokenPart& tokens, const Body& body) {
  const int64_t all = c10::multiply_integers(sizes);
  const int64_t count = tokens.count == 1 ? all : sizes[sizes.size() - 2] * sizes[sizes.size() - 1];
  for (int64_t local = 0; local < all; local += count) {
    body(TokenStretch{local, local * tokens.count + tokens.number * count, count});
  }
}

}  // namespace braid::kernels
