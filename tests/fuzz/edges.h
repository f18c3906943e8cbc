// Which edges of the program ran, as the compiler's -fsanitize-coverage=trace-pc tells them. One thread is watched: the
// one that calls reset().
#pragma once

#include <cstddef>

namespace braid::fuzz {

class Edges {
 public:
  // Forgets the edges that ran before.
  static void reset();
  // How many edges ran since reset() that had not run, or not so often (by powers of two), before any earlier call.
  // They count as known from now on.
  static size_t take_new();
};

}  // namespace braid::fuzz
