// Maps sample number i to one of several parts, in proportion to their weights: a pure function of i, in constant
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace braid::data {

// The parts take turns in a fixed round of kRound turns, repeated for ever. Part p has a whole number of the round's
// turns: its share of the weights, rounded by the largest remainder, at least one. They are spread evenly: no part is
// ever a whole turn ahead of its share.
class Interleave {
 public:
  static constexpr int kRound = 8192;

  // All weights are finite and more than 0; at most kRound of them (check).
  explicit Interleave(const std::vector<double>& weights);

  struct Turn {
    int part;
    int64_t number;  // how many samples of the part came before: 0, 1, 2, .. without a gap
  };
  Turn turn(int64_t index) const;
  // Turns of a part in a round, of kRound in all.
  int turns(int part) const { return turns_[static_cast<size_t>(part)]; }

 private:
  struct Place {
    int part, before;  // the part's turns earlier in the round
  };

  std::vector<int> turns_;
  std::vector<Place> round_;
};

}  // namespace braid::data
