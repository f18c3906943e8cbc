// Tables of moves: fewest loads, the space of prefetches, and the policies on traces of schedules.
#include "braid/moves/table.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/moves/faults.h"
#include "braid/schedule/generators.h"
#include "tests/moves/drawn_traces.h"

namespace braid::moves::table_test {
namespace {

constexpr int kDrawn = 500;

// Each step begins with nothing in memory: not periodic.
TEST(Table, NextUseNeedsTheFewestLoadsOfAStep) {
  Dice dice(1);
  for (int i = 0; i < kDrawn; ++i) {
    const Trace trace = drawn_trace(dice);
    const int capacity = dice.between(1, 4);
    const Table table = plan(trace, {capacity, Policy::NextUse, StepEnd::Drop});
    EXPECT_EQ(std::ssize(table.loads), fewest_loads(trace, capacity, 1)) << i;
    EXPECT_EQ(faults(trace, table, capacity), std::vector<std::string>()) << i;
  }
}

// Steps repeat and chunks stay in memory between them. After 20 steps the fewest loads of a further period are those of
// the steady state.
TEST(Table, NextUseNeedsTheFewestLoadsOfASteadyState) {
  Dice dice(2);
  int num_longer = 0;
  for (int i = 0; i < kDrawn; ++i) {
    const Trace trace = drawn_trace(dice);
    const int capacity = dice.between(1, 4);
    const Table table = plan(trace, {capacity});
    num_longer += table.num_steps > 1;
    const int fewest = fewest_loads(trace, capacity, 20 + table.num_steps) - fewest_loads(trace, capacity, 20);
    EXPECT_EQ(std::ssize(table.loads), fewest) << i;
    EXPECT_EQ(faults(trace, table, capacity), std::vector<std::string>()) << i;
  }
  EXPECT_GT(num_longer, 20);
}

TEST(Table, EveryPolicyKeepsTheCapacity) {
  Dice dice(3);
  for (int i = 0; i < kDrawn; ++i) {
    Trace trace = drawn_trace(dice, Sizes::Different);
    for (Use& use : trace.uses) {
      const int second = dice.between(0, static_cast<int>(trace.chunks.size()) - 1);
      if (second > use.chunks[0]) use.chunks.push_back(second);
    }
    Request request{least_capacity(trace) + dice.between(0, 8)};
    request.ahead = dice.between(0, 4);
    for (const Policy policy : {Policy::NextUse, Policy::LeastRecent, Policy::FirstIn}) {
      for (const StepEnd step_end : {StepEnd::Keep, StepEnd::Drop}) {
        request.policy = policy;
        request.step_end = step_end;
        EXPECT_EQ(faults(trace, plan(trace, request), request.capacity), std::vector<std::string>()) << i;
      }
    }
  }
}

TEST(Table, ByHand) {
  // Forward and backward over three blocks, memory for two.
  const Trace trace{{{10}, {10}, {10, Content::Gradients}}, {{{0}}, {{1}}, {{2}}, {{2}}, {{1}}, {{0}}}};
  const Table table = plan(trace, {20});
  EXPECT_EQ(table.num_steps, 1);
  EXPECT_EQ(table.initial, (std::vector<int>{0, 1}));
  EXPECT_EQ(table.loads, (std::vector<Load>{{2, 0, 2}, {0, 3, 5}}));
  EXPECT_EQ(table.evictions, (std::vector<Eviction>{{0, 0}, {2, 3, Fate::Write}}));
  EXPECT_EQ(loaded_bytes(trace, table), 20);
  EXPECT_EQ(written_bytes(trace, table), 10);
}

TEST(Table, ChunksStayIfAllFit) {
  Dice dice(4);
  const Trace trace = drawn_trace(dice, Sizes::Different);
  const int64_t all = 100;
  EXPECT_TRUE(plan(trace, {all}).loads.empty());
  EXPECT_EQ(plan(trace, {all, Policy::NextUse, StepEnd::Drop}).num_steps, 1);
  EXPECT_THROW(plan(trace, {least_capacity(trace) - 1}), InternalError);
}

TEST(Table, PolicyThatDoesNotRepeatDropsAtTheStepsEnd) {
  Trace trace{std::vector<Chunk>(90, Chunk{1}), {}};
  for (int chunk = 0; chunk < 90; ++chunk) trace.uses.push_back({{chunk}});
  const Table table = plan(trace, {45});
  EXPECT_EQ(table.num_steps, 1);
  EXPECT_TRUE(table.initial.empty());
  EXPECT_EQ(table.loads.size(), 90u);
  EXPECT_TRUE(faults(trace, table, 45).empty());
}

// Returns the bytes that NextUse loads in a step of all ranks, in units of those that LeastRecent loads. Each rank has
// the tied bytes and memory for `held` blocks of 8 bytes.
double ratio(const Schedule& schedule, int blocks_of_stage, int held, int64_t tied_bytes) {
  const std::vector<int64_t> bytes(blocks_of_stage, 8);
  const Stages stages = make_stages(std::vector<std::vector<int64_t>>(schedule.num_stages, bytes), tied_bytes);
  const int64_t capacity = 8 * held + tied_bytes;
  double next_use = 0, least_recent = 0;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const Trace trace = trace_of(schedule, rank, stages);
    const Table by_next_use = plan(trace, {capacity});
    const Table by_last_use = plan(trace, {capacity, Policy::LeastRecent});
    EXPECT_TRUE(faults(trace, by_next_use, capacity).empty());
    EXPECT_TRUE(faults(trace, by_last_use, capacity).empty());
    next_use += loaded_bytes(trace, by_next_use);
    least_recent += loaded_bytes(trace, by_last_use);
  }
  return next_use / least_recent;
}

TEST(Table, NextUseLoadsFewerBytesThanLeastRecent) {
  for (const int64_t tied_bytes : {0, 4}) {
    for (int held = 2; held < 6; ++held) {
      EXPECT_LE(ratio(schedule::gpipe(4, 4), 6, held, tied_bytes), 0.9) << held << ", " << tied_bytes;
      EXPECT_LE(ratio(make_schedule("interleaved", {4, 8, 2}), 3, held, tied_bytes), 0.9) << held << ", " << tied_bytes;
    }
  }
}

// The page of memory has this table.
TEST(Table, LoadsOfThePolicies) {
  const Trace trace = trace_of(schedule::gpipe(1, 4), 0, make_stages({std::vector<int64_t>(6, 8)}));
  std::vector<std::vector<size_t>> loads;
  for (const int64_t held : {2, 3, 4, 5}) {
    loads.emplace_back();
    for (const Policy policy : {Policy::NextUse, Policy::LeastRecent, Policy::FirstIn}) {
      loads.back().push_back(plan(trace, {8 * held, policy}).loads.size());
    }
  }
  EXPECT_EQ(loads, (std::vector<std::vector<size_t>>{{36, 44, 44}, {26, 42, 42}, {16, 40, 30}, {8, 38, 24}}));
}

}  // namespace
}  // namespace braid::moves::table_test
