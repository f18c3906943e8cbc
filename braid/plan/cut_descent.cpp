// First improvement, moves in a fixed order.
#include "braid/plan/cut_descent.h"

namespace braid::plan {
namespace {

constexpr int kShifts[] = {-1, 1, -2, 2, -4, 4, -8, 8};

// Cuts [first, last] moved by `shift`; nothing when a stage would be left empty.
std::vector<int> moved(std::vector<int> cuts, int first, int last, int shift) {
  for (int cut = first; cut <= last; ++cut) cuts[cut] += shift;
  const bool filled = cuts[first - 1] < cuts[first] && cuts[last] < cuts[last + 1];
  return filled ? cuts : std::vector<int>();
}

}  // namespace

std::vector<int> improved_cuts(const StageCosts& costs, std::vector<int> first_unit, int64_t limit_bytes) {
  Score best = score(costs.partition(first_unit), limit_bytes);
  const int last_cut = costs.num_stages() - 1;
  bool improved = true;
  const auto try_move = [&](int first, int last, int shift) {
    const auto cuts = moved(first_unit, first, last, shift);
    if (cuts.empty()) return;
    const Score now = score(costs.partition(cuts), limit_bytes);
    if (!(now < best)) return;
    best = now;
    first_unit = cuts;
    improved = true;
  };
  while (improved) {
    improved = false;
    for (int first = 1; first <= last_cut; ++first) {
      for (int last = first; last <= last_cut; ++last) {
        for (const int shift : kShifts) try_move(first, last, shift);
      }
    }
  }
  return first_unit;
}

}  // namespace braid::plan
