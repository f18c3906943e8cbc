// The windows of a text whose loss is measured: tokens that are read together, and those that count.
//
//   context 4, stride 2     tokens    0 1 2 3 4 5 6 7 8
//   window 0                reads     0 1 2 3             predicts 1 2 3 4
//   window 1                reads         2 3 4 5         predicts         5 6
//   window 2                reads             4 5 6 7     predicts             7 8
#pragma once

#include <cstdint>
#include <vector>

namespace braid::train {

// Reads tokens begin .. begin + length - 1; predicts the `num_new` that end with begin + length.
struct TextWindow {
  int64_t begin = 0, length = 0, num_new = 0;
  bool operator==(const TextWindow&) const = default;
};

// Those of `num_tokens` tokens, of which every one but the first is predicted once. 0 < stride <= context.
std::vector<TextWindow> text_windows(int64_t num_tokens, int64_t context, int64_t stride);

}  // namespace braid::train
