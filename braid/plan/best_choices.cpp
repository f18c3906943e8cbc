// Dynamic programming over the blocks of a chain, from the first to the last. Backward frees blocks from the last to
// the first, so a block's moment in backward depends on the blocks before it alone.
#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "braid/plan/recompute_chain.h"

namespace braid::plan {
namespace {

// The choice for the block before a position. Moved: it and those before it are on the tier.
enum class Before { Kept, KeptToTheEnd, Recomputed, Moved };

// The first blocks of a chain with a choice for each.
struct Beginning {
  double kept = 0, most = 0, seconds = 0;  // most: of all moments in backward so far
  Before before = Before::Recomputed;
  int position = 0;         // number of blocks
  int from = -1;            // index of the beginning that this one extends
  double last_segment = 0;  // Moved: bytes of the last segment, which is in memory while the next one runs
  double moved = 0;         // Moved: bytes on the tier
  bool recomputes = false;  // Moved: they keep inputs only
};

// Keeps those beginnings that no other one beats in time, bytes kept and most bytes.
void prune(std::vector<Beginning>& all) {
  std::ranges::sort(all, [](const Beginning& a, const Beginning& b) {
    return std::tie(a.seconds, a.kept, a.most) < std::tie(b.seconds, b.kept, b.most);
  });
  std::map<double, double> stairs;  // most bytes by bytes kept; both are those of faster beginnings
  std::erase_if(all, [&](const Beginning& one) {
    auto above = stairs.upper_bound(one.kept);
    if (above != stairs.begin() && std::prev(above)->second <= one.most) return true;
    while (above != stairs.end() && above->second >= one.most) above = stairs.erase(above);
    stairs.insert_or_assign(one.kept, one.most);
    return false;
  });
}

class ChoiceSearch {
 public:
  explicit ChoiceSearch(const RecomputeChain& chain) : chain_(chain), count_(static_cast<int>(chain.blocks.size())) {
    for (auto& of_state : open_) of_state.resize(count_ + 1);
    open(Beginning{.most = chain.least});
    if (!chain.moves) return;
    MovedBlocks kept(chain), recomputed(chain);
    double seconds = 0;
    for (const ChainBlock& block : chain.blocks) {
      kept.keep();
      open(moved(kept));
      recomputed.recompute(recomputed.count() + 1);
      Beginning one = moved(recomputed);
      one.recomputes = true;
      one.seconds += seconds += block.seconds;
      open(one);
    }
  }

  std::vector<ChainChoice> choices() {
    for (int position = 0; position < count_; ++position) {
      for (auto& of_state : open_) {
        if (&of_state != &open_[static_cast<size_t>(Before::Moved)]) prune(of_state[position]);
        for (const Beginning& one : of_state[position]) extend(one);
      }
    }
    std::vector<Beginning> ends;
    for (auto& of_state : open_) {
      for (const Beginning& one : of_state[count_]) ends.push_back(ended(one));
    }
    prune(ends);
    std::vector<ChainChoice> found;
    for (const Beginning& one : ends) found.push_back(choice(one));
    return found;
  }

 private:
  void open(const Beginning& one) { open_[static_cast<size_t>(one.before)][one.position].push_back(one); }

  Beginning moved(const MovedBlocks& blocks) const {
    return {.most = std::max(chain_.least, blocks.most()),
            .seconds = chain_.moves->waits(blocks.bytes()),
            .before = Before::Moved,
            .position = blocks.count(),
            .last_segment = blocks.last_segment(),
            .moved = blocks.bytes()};
  }

  void extend(const Beginning& one) {
    done_.push_back(one);
    const int from = static_cast<int>(done_.size()) - 1;
    const bool begins = one.position == 0 || one.before == Before::Recomputed || one.before == Before::Moved;
    if (one.before == Before::KeptToTheEnd || begins) keep(one, from, Before::KeptToTheEnd);
    if (one.before == Before::KeptToTheEnd) return;
    if (one.before == Before::Kept || begins) keep(one, from, Before::Kept);
    recompute(one, from);
  }

  void keep(Beginning one, int from, Before before) {
    const ChainBlock& block = chain_.blocks[one.position];
    // The moment of the block before is known now: the graph goes on.
    const bool goes_on = one.before == Before::Kept || one.before == Before::KeptToTheEnd;
    const bool follows_moved = one.before == Before::Moved;
    if (goes_on) meet(one, output(one) + chain_.blocks[one.position - 1].working);
    one.kept += block.kept + (one.position == 0 ? chain_.before : 0);
    ++one.position;
    one.before = before;
    one.from = from;
    if (follows_moved) meet(one, output(one) + block.at_border + std::exchange(one.last_segment, 0));
    if (before == Before::KeptToTheEnd || one.position < count_) open(one);
  }

  // Adds every segment that begins at the position.
  void recompute(Beginning one, int from) {
    if (one.before == Before::Kept) meet(one, output(one) + chain_.blocks[one.position - 1].at_border);
    const double input = chain_.blocks[one.position].input;
    one.kept += input;
    double graph = chain_.hidden - input + (one.position == 0 ? chain_.before : 0) + std::exchange(one.last_segment, 0);
    one.before = Before::Recomputed;
    one.from = from;
    double inside =
        std::numeric_limits<double>::lowest();  // the most of the segment's moments but for the last block's
    while (one.position < count_) {
      const ChainBlock& block = chain_.blocks[one.position++];
      graph += block.kept;
      one.seconds += block.seconds;
      const double output = one.position == count_ && !chain_.has_head ? chain_.output : 0;
      Beginning ends_here = one;
      meet(ends_here, output + std::max(inside, graph + block.at_border));
      open(ends_here);
      inside = std::max(inside, graph + block.working);
    }
  }

  // Returns the bytes of the output of a kept graph, that of the stage if it reaches it, while it runs backward.
  double output(const Beginning& one) const {
    const bool reaches_end = one.before == Before::KeptToTheEnd && !chain_.has_head;
    return std::max(reaches_end ? chain_.output : 0, chain_.kept_output);
  }

  static void meet(Beginning& one, double bytes) { one.most = std::max(one.most, one.kept + bytes); }

  Beginning ended(Beginning one) {
    done_.push_back(one);
    one.from = static_cast<int>(done_.size()) - 1;
    const bool keeps_last = one.before == Before::KeptToTheEnd;
    if (keeps_last) {
      const ChainBlock& last = chain_.blocks[count_ - 1];
      meet(one, output(one) + (chain_.has_head ? last.working : last.at_border));
    }
    if (count_ == 0) one.kept += chain_.before;
    one.kept += chain_.has_head ? chain_.head : keeps_last || count_ == 0 ? chain_.output : 0;
    if (chain_.has_head) meet(one, chain_.head_working + one.last_segment);
    meet(one, one.last_segment);
    return one;
  }

  ChainChoice choice(const Beginning& end) const {
    ChainChoice found{.memory = {.kept = end.kept, .working = end.most - end.kept}, .seconds = end.seconds};
    for (int at = end.from; at >= 0; at = done_[at].from) {
      const Beginning& one = done_[at];
      if (one.before == Before::Moved) add_moved(one, found);
      if (one.position == 0 || one.before != Before::Recomputed) continue;
      const int begin = done_[one.from].position;
      found.segments.push_back({chain_.first + begin, chain_.first + one.position, one.position - begin});
    }
    std::ranges::reverse(found.segments);
    return found;
  }

  void add_moved(const Beginning& one, ChainChoice& found) const {
    found.on_tier = chain_.first + one.position;
    found.memory.moved = one.moved;
    found.memory.last_moved = one.last_segment;
    for (int end = found.on_tier; one.recomputes && end > chain_.first; --end)
      found.segments.push_back({end - 1, end, 1});
  }

  const RecomputeChain& chain_;
  const int count_;
  std::vector<std::vector<Beginning>> open_[4];  // by Before and position
  std::vector<Beginning> done_;
};

}  // namespace

std::vector<ChainChoice> best_choices(const RecomputeChain& chain) { return ChoiceSearch(chain).choices(); }

}  // namespace braid::plan
