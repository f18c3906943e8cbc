// Choices of recomputed segments against trying every one, and against schedules that recompute a block several times.
// Bytes and times are small whole numbers, so that equal is equal.
#include "braid/plan/recompute_chain.h"

#include <gtest/gtest.h>

#include <limits>

#include "bench/support/rotor.h"
#include "tests/support/dice.h"

namespace braid::plan::recompute_chain_test {
namespace {

using Segments = std::vector<spec::RecomputedBlocks>;
constexpr double kNever = std::numeric_limits<double>::infinity();

RecomputeChain some_chain(Dice& dice, int num_blocks) {
  RecomputeChain chain;
  const bool alike = dice.between(0, 2) == 0, at_tokens = dice.between(0, 1) == 0;
  for (int i = 0; i < num_blocks; ++i) {
    ChainBlock block;
    block.kept = dice.between(1, 20);
    block.input = dice.between(0, 4);
    block.working = dice.between(-5, 12);
    block.at_border = dice.between(-5, 12);
    block.seconds = dice.between(0, 9);
    chain.blocks.push_back(alike && i > 0 ? chain.blocks.back() : block);
  }
  if (at_tokens && num_blocks > 0) chain.blocks[0].input = 0;
  chain.before = at_tokens ? dice.between(0, 5) : 0;
  chain.hidden = dice.between(0, 4);
  chain.output = dice.between(0, 4);
  chain.has_head = dice.between(0, 1) == 0;
  if (chain.has_head) chain.head = dice.between(0, 20), chain.head_working = dice.between(-10, 20);
  chain.least = dice.between(0, 2) == 0 ? dice.between(0, 40) : 0;
  chain.first = dice.between(0, 2);
  return chain;
}

// Makes blocks able to move. Each block has a graph of its own then.
void let_move(Dice& dice, RecomputeChain& chain) {
  for (ChainBlock& block : chain.blocks) block.working = block.at_border;
  chain.kept_output = dice.between(0, 4);
  chain.forward = dice.between(0, 12);
  chain.padding = dice.between(0, 3);
  chain.is_pipelined = dice.between(0, 1) == 0;
  chain.moves = MoveTimes{.write = dice.between(0, 2) / 2.0,
                          .read = dice.between(0, 2) / 2.0,
                          .copy = dice.between(0, 2) / 4.0,
                          .forward = static_cast<double>(dice.between(0, 20)),
                          .backward = static_cast<double>(dice.between(0, 20))};
}

// Returns every choice: each block is kept, begins a segment or continues one.
std::vector<Segments> all_choices(int first, int num_blocks) {
  std::vector<Segments> all{{}};
  for (int block = first; block < first + num_blocks; ++block) {
    const size_t before = all.size();
    for (size_t i = 0; i < before; ++i) {
      Segments begins = all[i];
      begins.push_back({block, block + 1, 1});
      all.push_back(begins);
      if (all[i].empty() || all[i].back().end != block) continue;
      Segments continues = all[i];
      ++continues.back().end, ++continues.back().segment;
      all.push_back(continues);
    }
  }
  return all;
}

struct Need {
  ChainMemory memory;
  double seconds;
};

double fastest(const std::vector<Need>& all, int in_flight, double limit) {
  double least = kNever;
  for (const Need& one : all) {
    if (one.memory.peak(in_flight) <= limit) least = std::min(least, one.seconds);
  }
  return least;
}

Need need(const RecomputeChain& chain, const Segments& segments, int on_tier = 0) {
  const ChainMemory memory = chain_memory(chain, segments, on_tier);
  return {memory, chain_seconds(chain, segments) + (on_tier > 0 ? chain.moves->waits(memory.moved) : 0)};
}

std::vector<Need> needs(const RecomputeChain& chain, const std::vector<Segments>& choices) {
  std::vector<Need> all;
  for (const Segments& segments : choices) all.push_back(need(chain, segments));
  return all;
}

// Returns the needs where 1 to all of the first blocks move, with all of these kept or all recomputed.
std::vector<Need> needs_with_moves(const RecomputeChain& chain) {
  std::vector<Need> all;
  const int end = chain.first + static_cast<int>(chain.blocks.size());
  Segments recomputed;
  for (int moved = chain.first + 1; moved <= end; ++moved) {
    recomputed.push_back({moved - 1, moved, 1});
    for (const Segments& behind : all_choices(moved, end - moved)) {
      all.push_back(need(chain, behind, moved));
      Segments both = recomputed;
      both.insert(both.end(), behind.begin(), behind.end());
      all.push_back(need(chain, both, moved));
    }
  }
  return all;
}

TEST(BestChoices, AreAsFastAsTheFastestOfAllUnderEveryLimit) {
  int num_compared = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    Dice dice(seed);
    const RecomputeChain chain = some_chain(dice, dice.between(0, 7));
    const auto all = needs(chain, all_choices(chain.first, static_cast<int>(chain.blocks.size())));
    std::vector<Need> best;
    for (const ChainChoice& choice : best_choices(chain)) {
      EXPECT_EQ(choice.memory, chain_memory(chain, choice.segments)) << seed;
      EXPECT_EQ(choice.seconds, chain_seconds(chain, choice.segments)) << seed;
      best.push_back({choice.memory, choice.seconds});
    }
    for (const int in_flight : {1, 2, 5}) {
      for (const Need& one : all) {
        const double limit = one.memory.peak(in_flight);
        ASSERT_EQ(fastest(best, in_flight, limit), fastest(all, in_flight, limit)) << seed << ", " << in_flight;
        ++num_compared;
      }
    }
  }
  EXPECT_GT(num_compared, 300'000);
}

TEST(BestChoices, WithMovesAreAsFastAsTheFastestOfAllUnderEveryLimit) {
  int num_moving = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Dice dice(seed);
    RecomputeChain chain = some_chain(dice, dice.between(1, 6));
    let_move(dice, chain);
    auto all = needs(chain, all_choices(chain.first, static_cast<int>(chain.blocks.size())));
    for (const Need& moving : needs_with_moves(chain)) all.push_back(moving);
    std::vector<Need> best;
    for (const ChainChoice& choice : best_choices(chain)) {
      best.push_back(need(chain, choice.segments, choice.on_tier));
      EXPECT_EQ(choice.memory, best.back().memory) << seed;
      EXPECT_EQ(choice.seconds, best.back().seconds) << seed;
      if (choice.on_tier > 0) ++num_moving;
    }
    for (const int in_flight : {1, 2, 5}) {
      for (const Need& one : all) {
        const double limit = one.memory.peak(in_flight);
        ASSERT_EQ(fastest(best, in_flight, limit), fastest(all, in_flight, limit)) << seed << ", " << in_flight;
      }
    }
  }
  EXPECT_GT(num_moving, 500);
}

TEST(BestChoices, RecomputeNothingWithoutLimit) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    Dice dice(seed);
    RecomputeChain chain = some_chain(dice, 6);
    for (ChainBlock& block : chain.blocks) block.seconds += 1;
    EXPECT_EQ(best_choices(chain).front().segments, Segments()) << seed;
  }
}

// Kept: 10 for each block, of which the input is 1.
RecomputeChain equal_blocks(int count) {
  RecomputeChain chain;
  chain.blocks.assign(count, {.kept = 10, .input = 1, .working = 3, .at_border = 3, .seconds = 1});
  return chain;
}

//   forward of a microbatch    0 1 2 3      kept: 2 and 3
//   moved meanwhile            . 0 1
TEST(ChainMemory, OfMovedBlocksIsThatOfTwo) {
  RecomputeChain chain = equal_blocks(4);
  const ChainMemory memory = chain_memory(chain, {}, 2);
  EXPECT_EQ(memory.kept, 20);
  EXPECT_EQ(memory.moved, 20);
  EXPECT_EQ(memory.peak(1), 23) << "in backward: 0 and 1, or 2 and 3, and what a block works with";
  EXPECT_EQ(memory.peak(2), 43);
  EXPECT_EQ(chain_memory(chain, {}, 4).peak(5), 23) << "whatever is in flight";
  EXPECT_EQ(chain_memory(chain, {{0, 1, 1}, {1, 2, 1}}, 2).moved, 2) << "inputs";
  EXPECT_EQ(chain_memory(chain, {{1, 3, 2}}, 2).moved, 10) << "a segment that ends behind them stays";
}

// The square root of the blocks (Chen, Xu, Zhang, Guestrin, "Training deep nets with sublinear memory cost", 2016):
// inputs of nine segments of one block each, or of three of three blocks.
TEST(BestChoices, SegmentsHaveTheLengthThatNeedsLeastMemory) {
  const RecomputeChain chain = equal_blocks(9);
  const ChainMemory least = best_choices(chain).back().memory;
  EXPECT_LE(least.peak(1), chain_memory(chain, spec::recomputed_segments(*spec::recompute_policy("full"), 9)).peak(1));
  EXPECT_EQ(chain_memory(chain, {{0, 3, 3}, {3, 6, 3}, {6, 9, 3}}).kept, 3);
}

// Segments that run backward last may be long: the others are free by then.
TEST(ChainMemory, IsOfTheFullestMoment) {
  const RecomputeChain chain = equal_blocks(4);
  EXPECT_EQ(chain_memory(chain, {}), (ChainMemory{40, 3}));
  EXPECT_EQ(chain_memory(chain, {{0, 2, 2}}), (ChainMemory{1 + 20, 3}));
  EXPECT_EQ(chain_memory(chain, {{2, 4, 2}}), (ChainMemory{20 + 1, 19 + 3}));
  EXPECT_EQ(chain_memory(chain, {{0, 3, 3}}), (ChainMemory{1 + 10, 19 + 3}));
}

TEST(BestChoices, AreNoFasterThanRecomputingBlocksSeveralTimes) {
  int num_feasible = 0, num_faster = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Dice dice(seed);
    RecomputeChain chain;
    chain.blocks = some_chain(dice, dice.between(1, 7)).blocks;
    for (ChainBlock& block : chain.blocks) block.input = std::min(block.input, block.kept);
    const std::vector<ChainChoice> best = best_choices(chain);
    Rotor rotor(chain);
    double before = kNever;
    for (int bytes = 1; bytes <= 170; bytes += 3) {
      double ours = kNever;
      for (const ChainChoice& choice : best) {
        if (choice.memory.peak(1) <= bytes) ours = std::min(ours, choice.seconds);
      }
      const double nested = rotor.seconds(bytes);
      EXPECT_LE(nested, ours) << seed << ", " << bytes;
      EXPECT_LE(nested, before) << "more memory is never slower";
      before = nested;
      if (ours < kNever) ++num_feasible;
      if (nested < ours) ++num_faster;
    }
    EXPECT_EQ(rotor.seconds(10'000), 0);
  }
  EXPECT_GT(num_feasible, 5000);
  EXPECT_GT(num_faster, 50) << "else the two would not differ";
}

}  // namespace
}  // namespace braid::plan::recompute_chain_test
