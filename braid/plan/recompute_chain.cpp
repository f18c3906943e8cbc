// The memory of a choice: backward frees segments from the last to the first.
#include "braid/plan/recompute_chain.h"

#include <algorithm>

namespace braid::plan {
namespace {

// Returns the segments without the blocks before the chain, in numbers of the chain.
std::vector<spec::RecomputedBlocks> within(const RecomputeChain& chain,
                                           const std::vector<spec::RecomputedBlocks>& segments) {
  std::vector<spec::RecomputedBlocks> own;
  for (const spec::RecomputedBlocks& segment : segments) {
    const int begin = std::max(segment.begin - chain.first, 0), end = segment.end - chain.first;
    if (end > begin) own.push_back({begin, end, end - begin});
  }
  return own;
}

// The bytes of one microbatch while its forward and then its backward pass the chain.
class Passing {
 public:
  explicit Passing(const RecomputeChain& chain) : chain_(chain), most_(chain.least) {}

  // Adds the blocks up to `end`, whose graphs are kept.
  void keep(int end) {
    const double output = output_of(end);
    for (; at_ < end; ++at_) {
      const ChainBlock& block = chain_.blocks[at_];
      const bool at_border = at_ + 1 == end && (end < count() || !chain_.has_head);
      kept_ += block.kept + (at_ == 0 ? chain_.before : 0);
      meet(kept_ + output + (at_border ? block.at_border : block.working));
    }
  }

  void recompute(int end) {
    const int begin = at_;
    kept_ += chain_.blocks[begin].input;
    double graph = chain_.hidden - chain_.blocks[begin].input + (begin == 0 ? chain_.before : 0) + output_of(end);
    for (; at_ < end; ++at_) {
      graph += chain_.blocks[at_].kept;
      meet(kept_ + graph + (at_ + 1 == end ? chain_.blocks[at_].at_border : chain_.blocks[at_].working));
    }
  }

  ChainMemory end(bool keeps_last) {
    if (chain_.blocks.empty()) kept_ += chain_.before;
    kept_ += chain_.has_head ? chain_.head : keeps_last ? chain_.output : 0;
    if (chain_.has_head) meet(kept_ + chain_.head_working);
    meet(kept_);
    return {kept_, most_ - kept_};
  }

 private:
  int count() const { return static_cast<int>(chain_.blocks.size()); }
  // Returns the stage's output, which is held while a graph up to `end` runs backward.
  double output_of(int end) const { return end == count() && !chain_.has_head ? chain_.output : 0; }
  void meet(double bytes) { most_ = std::max(most_, bytes); }

  const RecomputeChain& chain_;
  int at_ = 0;
  double kept_ = 0, most_;
};

}  // namespace

ChainMemory chain_memory(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments) {
  const int count = static_cast<int>(chain.blocks.size());
  Passing passing(chain);
  int end = 0;
  for (const spec::RecomputedBlocks& segment : within(chain, segments)) {
    passing.keep(segment.begin);
    passing.recompute(segment.end);
    end = segment.end;
  }
  passing.keep(count);
  return passing.end(end < count || count == 0);
}

double chain_seconds(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments) {
  double seconds = 0;
  for (const spec::RecomputedBlocks& segment : within(chain, segments)) {
    for (int block = segment.begin; block < segment.end; ++block) seconds += chain.blocks[block].seconds;
  }
  return seconds;
}

}  // namespace braid::plan
