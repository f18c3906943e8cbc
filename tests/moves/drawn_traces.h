// Small traces that are drawn, and the fewest loads of any choice of evictions.
#pragma once

#include <algorithm>
#include <bit>
#include <vector>

#include "braid/moves/table.h"
#include "tests/support/dice.h"

namespace braid::moves {

enum class Sizes { Equal, Different };

// Returns a trace of 2 to 6 chunks and 2 to 12 uses of one chunk each.
inline Trace drawn_trace(Dice& dice, Sizes sizes = Sizes::Equal) {
  Trace trace;
  const int num_chunks = dice.between(2, 6), num_uses = dice.between(2, 12);
  for (int chunk = 0; chunk < num_chunks; ++chunk) {
    const Content content = dice.between(0, 3) == 0 ? Content::Gradients : Content::Parameters;
    trace.chunks.push_back({sizes == Sizes::Equal ? 1 : dice.between(1, 5), content});
  }
  for (int use = 0; use < num_uses; ++use) trace.uses.push_back({{dice.between(0, num_chunks - 1)}});
  return trace;
}

// Returns the fewest loads of `num_steps` steps from an empty memory for `capacity` chunks, over all choices. Only what
// leaves at a load is chosen: to evict or to load earlier than needed never needs fewer loads.
inline int fewest_loads(const Trace& trace, int capacity, int num_steps) {
  constexpr int kUnreachable = 1 << 30;
  std::vector<int> loads(size_t{1} << trace.chunks.size(), kUnreachable);  // by set of chunks in memory
  loads[0] = 0;
  for (size_t use = 0; use < trace.uses.size() * num_steps; ++use) {
    const unsigned chunk = 1u << trace.uses[use % trace.uses.size()].chunks[0];
    std::vector<int> after(loads.size(), kUnreachable);
    for (unsigned held = 0; held < loads.size(); ++held) {
      if (loads[held] == kUnreachable) continue;
      const int missing = (held & chunk) == 0;
      for (unsigned kept = held;; kept = (kept - 1) & held) {  // all subsets
        const unsigned next = kept | chunk;
        if (std::popcount(next) <= capacity) after[next] = std::min(after[next], loads[held] + missing);
        if (kept == 0) break;
      }
    }
    loads = after;
  }
  return *std::min_element(loads.begin(), loads.end());
}

}  // namespace braid::moves
