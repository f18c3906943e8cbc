// A pseudo-random order of 0 .. size - 1 that needs no table: each element is computed, in constant memory.
#pragma once

#include <cstdint>

namespace braid::data {

// A bijection of [0, size) onto itself. A balanced Feistel network permutes the smallest 4^h >= size. Values that fall
// outside the range are fed in again (cycle-walking), fewer than four times on average. Source: Black & Rogaway,
// "Ciphers with Arbitrary Finite Domains" (2002), sections 3 (cycle-walking) and 4 (Feistel).
class Permutation {
 public:
  Permutation(int64_t size, uint64_t key);
  int64_t operator()(int64_t place) const;

 private:
  uint64_t scramble(uint64_t value) const;

  uint64_t size_, key_, mask_;
  int half_bits_;
};

}  // namespace braid::data
