// A stretch of a sampler's samples as one number, to compare streams by and to pin them.
#pragma once

#include <vector>

#include "braid/base/seeds.h"
#include "braid/data/sampler.h"

namespace braid {

// Returns the hash of samples [first, first + count), in this order.
inline uint64_t stream_hash(const data::Sampler& sampler, int context, int64_t first, int64_t count) {
  std::vector<int64_t> tokens(static_cast<size_t>(context) + 1);
  uint64_t all = 0;
  for (int64_t index = first; index < first + count; ++index) {
    sampler.read(index, tokens);
    uint64_t one = 0xCBF29CE484222325;
    for (const int64_t token : tokens) one = (one ^ static_cast<uint64_t>(token)) * 0x100000001B3;
    all = random_bits(all, one);
  }
  return all;
}

}  // namespace braid
