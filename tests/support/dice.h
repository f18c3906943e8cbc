// Whole numbers for tests that try many cases: the same every time, from a seed.
#pragma once

#include <cstdint>

#include "braid/base/seeds.h"

namespace braid {

class Dice {
 public:
  explicit Dice(uint64_t seed) : seed_(seed) {}
  int between(int low, int high) { return low + static_cast<int>(random_bits(seed_, next_++) % (high - low + 1)); }

 private:
  uint64_t seed_, next_ = 0;
};

}  // namespace braid
