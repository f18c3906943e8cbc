// Half a block at a time to the rank that ends first with it. Another rank in its place would end no earlier, so that
// no exchange of halves makes the slowest rank faster.
#include "braid/plan/equal_blocks.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "braid/base/errors.h"

namespace braid::plan {
namespace {

struct RankLoad {
  double seconds = 0, half_seconds = 0;
  std::vector<size_t> stages;
};

}  // namespace

std::vector<double> cut_equal_blocks(const std::vector<BlockStage>& stages, int num_blocks) {
  std::vector<double> blocks, seconds;  // of stages
  std::vector<RankLoad> ranks;
  int left = 2 * num_blocks;
  for (const BlockStage& stage : stages) {
    const int halves = stage.end_seconds > 0 ? 0 : 1;
    left -= halves;
    blocks.push_back(halves / 2.0);
    seconds.push_back(stage.end_seconds + blocks.back() * stage.block_seconds);
    if (stage.rank >= std::ssize(ranks)) ranks.resize(stage.rank + 1);
    RankLoad& load = ranks[stage.rank];
    load.seconds += seconds.back();
    load.half_seconds = stage.block_seconds / 2;
    load.stages.push_back(blocks.size() - 1);
  }
  check(left >= 0, "every stage has a part of the model");
  // By when they would end with half a block more.
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> next;
  const auto queue = [&](int rank) { next.emplace(ranks[rank].seconds + ranks[rank].half_seconds, -rank); };
  for (int rank = 0; rank < std::ssize(ranks); ++rank) queue(rank);
  for (; left > 0; --left) {
    const int rank = -next.top().second;
    next.pop();
    RankLoad& load = ranks[rank];
    const size_t shortest = *std::ranges::min_element(load.stages, {}, [&](size_t stage) { return seconds[stage]; });
    blocks[shortest] += 0.5;
    seconds[shortest] += load.half_seconds;
    load.seconds += load.half_seconds;
    queue(rank);
  }
  return blocks;
}

}  // namespace braid::plan
