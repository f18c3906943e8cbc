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
  // `moved`: the first blocks, which hold nothing while the others run.
  Passing(const RecomputeChain& chain, const MovedBlocks& moved)
      : chain_(chain),
        at_(moved.count()),
        read_meanwhile_(moved.last_segment()),
        most_(std::max({chain.least, moved.peaks().backward_of_others, moved.peaks().backward_of_first})) {}

  // Adds the blocks up to `end`, whose graphs are kept.
  void keep(int end) {
    const double output = std::max(output_of(end), chain_.kept_output);
    for (; at_ < end; ++at_) {
      const ChainBlock& block = chain_.blocks[at_];
      const bool at_border = at_ + 1 == end && (end < count() || !chain_.has_head);
      kept_ += block.kept + (at_ == 0 ? chain_.before : 0);
      meet(kept_ + output + (at_border ? block.at_border : block.working));
      read_meanwhile_ = 0;
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
    read_meanwhile_ = 0;
  }

  ChainMemory end(bool keeps_last) {
    if (chain_.blocks.empty()) kept_ += chain_.before;
    kept_ += chain_.has_head ? chain_.head : keeps_last ? chain_.output : 0;
    if (chain_.has_head) meet(kept_ + chain_.head_working);
    meet(kept_);
    return {.kept = kept_, .working = most_ - kept_};
  }

 private:
  int count() const { return static_cast<int>(chain_.blocks.size()); }
  // Returns the stage's output, which is held while a graph up to `end` runs backward.
  double output_of(int end) const { return end == count() && !chain_.has_head ? chain_.output : 0; }
  void meet(double bytes) { most_ = std::max(most_, bytes + read_meanwhile_); }

  const RecomputeChain& chain_;
  int at_;
  double read_meanwhile_;  // the moved segment before the one that runs
  double kept_ = 0, most_;
};

// Returns the first `on_tier` blocks of the stage, less those of a segment that ends behind them.
MovedBlocks moved_blocks(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& own, int on_tier) {
  const int end = std::min(on_tier - chain.first, static_cast<int>(chain.blocks.size()));
  MovedBlocks moved(chain);
  for (const spec::RecomputedBlocks& segment : own) {
    while (moved.count() < std::min(segment.begin, end)) moved.keep();
    if (segment.end > end) return moved;
    moved.recompute(segment.end);
  }
  while (moved.count() < end) moved.keep();
  return moved;
}

}  // namespace

void MovedBlocks::add(double segment, double working) {
  if (num_segments_++ == 0) {
    first_segment_ = segment;
    first_ = segment + working;
  } else {
    others_ = std::max(others_, segment + last_segment_ + working);
  }
  bytes_ += segment;
  largest_ = std::max(largest_, segment);
  last_segment_ = segment;
}

void MovedBlocks::keep() {
  const ChainBlock& block = chain_.blocks[count_];
  add(block.kept + (count_ == 0 ? chain_.before : 0), block.at_border);
  forward_ = chain_.forward;
  ++count_;
}

void MovedBlocks::recompute(int end) {
  const double input = chain_.blocks[count_].input;
  double graph = chain_.hidden - input + (count_ == 0 ? chain_.before : 0), most = 0;
  for (; count_ < end; ++count_) {
    const ChainBlock& block = chain_.blocks[count_];
    graph += block.kept;
    most = std::max(most, graph + (count_ + 1 == end ? block.at_border : block.working));
  }
  add(input, most);
}

MovedPeaks MovedBlocks::peaks() const {
  if (count_ == 0) return {};
  const double padding = chain_.padding;
  return {.forward = padding + forward_ + std::min(2 * largest_, bytes_),
          .forward_of_first = padding + forward_ + first_segment_,
          .backward_of_first = padding + first_,
          .backward_of_others = num_segments_ > 1 ? padding + others_ : 0};
}

double MovedBlocks::most() const {
  const bool is_last_part = count_ == static_cast<int>(chain_.blocks.size()) && !chain_.has_head;
  const bool follows_another = chain_.is_pipelined && is_last_part;  // the last segment of another microbatch
  const double more = follows_another ? std::max(2 * largest_ - bytes_, 0.0) : 0;
  const MovedPeaks peak = peaks();
  return std::max({peak.backward_of_others, peak.backward_of_first, peak.forward + more});
}

namespace {

// Returns the memory without the forward of blocks that move.
ChainMemory backward_memory(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& own,
                            const MovedBlocks& moved) {
  const int count = static_cast<int>(chain.blocks.size());
  Passing passing(chain, moved);
  int end = moved.count();
  for (const spec::RecomputedBlocks& segment : own) {
    if (segment.end <= moved.count()) continue;
    passing.keep(segment.begin);
    passing.recompute(segment.end);
    end = segment.end;
  }
  passing.keep(count);
  return passing.end(end < count || count == 0);
}

}  // namespace

ChainMemory chain_memory(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments,
                         int on_tier) {
  const std::vector<spec::RecomputedBlocks> own = within(chain, segments);
  const MovedBlocks moved = moved_blocks(chain, own, on_tier);
  ChainMemory memory = backward_memory(chain, own, moved);
  if (moved.count() > 0) memory.working = std::max(memory.working, moved.most() - memory.kept);
  memory.moved = moved.bytes();
  memory.last_moved = moved.last_segment();
  return memory;
}

MovedPeaks moved_peaks(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments, int on_tier) {
  const std::vector<spec::RecomputedBlocks> own = within(chain, segments);
  const MovedBlocks moved = moved_blocks(chain, own, on_tier);
  MovedPeaks peaks = moved.peaks();
  peaks.backward = backward_memory(chain, own, moved).peak(1);
  return peaks;
}

double chain_seconds(const RecomputeChain& chain, const std::vector<spec::RecomputedBlocks>& segments) {
  double seconds = 0;
  for (const spec::RecomputedBlocks& segment : within(chain, segments)) {
    for (int block = segment.begin; block < segment.end; ++block) seconds += chain.blocks[block].seconds;
  }
  return seconds;
}

}  // namespace braid::plan
