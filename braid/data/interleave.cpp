// The round is filled turn by turn with the part that is furthest behind its share.
#include "braid/data/interleave.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "braid/base/errors.h"

namespace braid::data {
namespace {

// Returns whole turns that add up to kRound. They are rounded down, at least one; then the largest remainders get one
// more, or the parts with most get one less where the small ones took too many.
std::vector<int> apportioned(const std::vector<double>& weights) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<int> turns;
  std::vector<double> remainders;
  for (const double weight : weights) {
    check(std::isfinite(weight) && weight > 0, "a part of a blend has a weight");
    const double exact = weight / sum * Interleave::kRound;
    turns.push_back(std::max(1, static_cast<int>(exact)));
    remainders.push_back(exact - turns.back());
  }
  int left = Interleave::kRound - std::accumulate(turns.begin(), turns.end(), 0);
  for (; left > 0; --left) {
    const auto most = static_cast<size_t>(std::max_element(remainders.begin(), remainders.end()) - remainders.begin());
    ++turns[most];
    remainders[most] -= 1;
  }
  for (; left < 0; ++left) --*std::max_element(turns.begin(), turns.end());
  return turns;
}

}  // namespace

Interleave::Interleave(const std::vector<double>& weights) {
  check(!weights.empty() && weights.size() <= kRound, "a blend has between 1 and 8192 parts");
  if (weights.size() == 1) {
    turns_ = {kRound};
    round_ = {{0, 0}};
    return;
  }
  turns_ = apportioned(weights);
  std::vector<int> taken(weights.size(), 0);
  // After turn t a part is behind by turns[p] (t + 1) / kRound - taken[p]. These add up to 1 before a turn is taken, so
  // the largest is above 0 and no part takes more than its turns.
  for (int64_t t = 0; t < kRound; ++t) {
    size_t furthest = 0;
    int64_t behind = -kRound * int64_t{kRound};
    for (size_t p = 0; p < taken.size(); ++p) {
      const int64_t here = turns_[p] * (t + 1) - int64_t{kRound} * taken[p];
      if (here > behind) behind = here, furthest = p;
    }
    round_.push_back({static_cast<int>(furthest), taken[furthest]++});
  }
}

Interleave::Turn Interleave::turn(int64_t index) const {
  check(index >= 0, "samples count from 0");
  const auto size = static_cast<int64_t>(round_.size());
  const Place& place = round_[static_cast<size_t>(index % size)];
  const int64_t per_round = size == 1 ? 1 : turns_[static_cast<size_t>(place.part)];
  return {place.part, index / size * per_round + place.before};
}

}  // namespace braid::data
