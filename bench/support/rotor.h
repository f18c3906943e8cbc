// The recursion of Beaumont, Eyraud-Dubois, Herrmann, Joly and Shilova, "Optimal checkpointing for heterogeneous
// chains" (2019), theorem 1, in the terms of recompute_chain.h: the least time to recompute if a block may be
// recomputed several times. It is a lower bound of what best_choices() finds, whose segments are recomputed once.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>

#include "braid/plan/recompute_chain.h"

namespace braid::plan {

class Rotor {
 public:
  explicit Rotor(const RecomputeChain& chain) : blocks_(chain.blocks) {}

  // Returns the seconds that are recomputed with `bytes` for one microbatch, without ends of the stage; infinity if the
  // bytes are too few. Bytes are whole numbers.
  double seconds(int bytes) {
    double forward = 0;
    for (const ChainBlock& block : blocks_) forward += block.seconds;
    return all_forwards(0, static_cast<int>(blocks_.size()), bytes) - forward;
  }

 private:
  // Returns the time of all forwards from the input of block `begin` until the blocks up to `end` have run backward.
  double all_forwards(int begin, int end, int bytes) {
    if (begin == end) return 0;
    if (const auto found = known_.find({begin, end, bytes}); found != known_.end()) return found->second;
    const ChainBlock& block = blocks_[begin];
    double least = std::numeric_limits<double>::infinity();
    if (block.kept + std::min(block.working, block.at_border) <= bytes) {
      least = block.seconds + all_forwards(begin + 1, end, bytes - static_cast<int>(block.kept));
    }
    double forward = 0;
    for (int next = begin + 1; next <= end - 1; ++next) {
      forward += blocks_[next - 1].seconds;
      const double rest = all_forwards(next, end, bytes - static_cast<int>(block.input));
      if (forward + rest < least) least = std::min(least, forward + rest + all_forwards(begin, next, bytes));
    }
    return known_[{begin, end, bytes}] = least;
  }

  const std::vector<ChainBlock> blocks_;
  std::map<std::tuple<int, int, int>, double> known_;
};

}  // namespace braid::plan
