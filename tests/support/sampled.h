// Samples of many variants: a run of the tests takes some, and under BRAID_FULL all.
#pragma once

#include <cstdlib>
#include <vector>

namespace braid {

inline bool full_run() { return std::getenv("BRAID_FULL") != nullptr; }

// Every `stride`-th, from the first on; all of them in a full run.
template <class Variant>
std::vector<Variant> sampled(const std::vector<Variant>& all, size_t stride) {
  std::vector<Variant> some;
  for (size_t i = 0; i < all.size(); i += full_run() ? 1 : stride) some.push_back(all[i]);
  return some;
}

}  // namespace braid
