// The runtime's interface: traced steps, steps by the table, steps that differ.
#include "braid/moves/residency.h"

#include <gtest/gtest.h>

#include <set>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/moves/faults.h"
#include "braid/schedule/generators.h"
#include "tests/moves/drawn_traces.h"

namespace braid::moves::residency_test {
namespace {

// Memory that follows the moves and notices those that do not fit.
class Memory {
 public:
  Memory(const std::vector<Chunk>& chunks, int64_t capacity) : chunks_(chunks), capacity_(capacity) {}

  void run(const Moves& moves) {
    for (const Departure& departure : moves.evictions) {
      EXPECT_EQ(held_.erase(departure.chunk), 1u) << departure.chunk;
      EXPECT_EQ(departure.fate, fate_of(chunks_[departure.chunk]));
    }
    for (const int chunk : moves.loads) {
      EXPECT_TRUE(held_.insert(chunk).second) << chunk;
      loaded_ += chunks_[chunk].bytes;
    }
    int64_t bytes = 0;
    for (const int chunk : held_) bytes += chunks_[chunk].bytes;
    EXPECT_LE(bytes, capacity_);
  }

  bool holds(int chunk) const { return held_.contains(chunk); }
  int64_t take_loaded() { return std::exchange(loaded_, 0); }

 private:
  const std::vector<Chunk> chunks_;
  const int64_t capacity_;
  std::set<int> held_;
  int64_t loaded_ = 0;
};

void run_step(Residency& residency, Memory& memory, const std::vector<Use>& uses) {
  memory.run(residency.begin_step());
  Moves last;
  for (const Use& use : uses) {
    memory.run(residency.before_use(use.chunks));
    for (const int chunk : use.chunks) EXPECT_TRUE(memory.holds(chunk) && residency.holds(chunk)) << chunk;
    last = residency.after_use(use.chunks);
    memory.run(last);
  }
  const bool ended_early = residency.follows_table() && std::ssize(uses) < residency.table()->uses_per_step;
  EXPECT_TRUE(ended_early || last.loads.empty());  // they would be the next step's, before the update
}

// Returns forward and backward of two microbatches over `blocks` blocks of 10 bytes.
Trace small_trace(int blocks) {
  return trace_of(schedule::gpipe(1, 2), 0, make_stages({std::vector<int64_t>(blocks, 10)}));
}

TEST(Residency, FollowsTheTableAfterATracedStep) {
  Dice dice(6);
  for (int i = 0; i < 200; ++i) {
    const Trace trace = drawn_trace(dice, Sizes::Different);
    Request request{least_capacity(trace) + dice.between(0, 8)};
    if (dice.between(0, 1) == 1) request.step_end = StepEnd::Drop;
    request.ahead = dice.between(0, 2);
    Residency residency(trace.chunks, request);
    Memory memory(trace.chunks, request.capacity);
    run_step(residency, memory, trace.uses);
    EXPECT_FALSE(residency.follows_table());
    run_step(residency, memory, trace.uses);  // brings memory to the initial state
    EXPECT_TRUE(residency.follows_table());
    const Table table = plan(trace, request);
    for (int step = 1; step < table.num_steps; ++step) run_step(residency, memory, trace.uses);
    memory.take_loaded();
    for (int step = 0; step < table.num_steps; ++step) run_step(residency, memory, trace.uses);
    EXPECT_DOUBLE_EQ(memory.take_loaded(), loaded_bytes(trace, table) * table.num_steps) << i;
  }
}

TEST(Residency, TracedStepEvictsTheLeastRecentlyUsed) {
  Residency residency({{10}, {10}, {10, Content::Gradients}}, {20});
  Memory memory({{10}, {10}, {10, Content::Gradients}}, 20);
  run_step(residency, memory, {{{0}}, {{1}}, {{0}}, {{2}}});
  EXPECT_TRUE(memory.holds(0) && !memory.holds(1) && memory.holds(2));
  EXPECT_EQ(residency.bytes_held(), 20);
  EXPECT_EQ(residency.bytes_loaded(), 30);
}

TEST(Residency, StepThatDiffersIsTraced) {
  const Trace trace = small_trace(4);
  Residency residency(trace.chunks, {20});
  Memory memory(trace.chunks, 20);
  for (int step = 0; step < 3; ++step) run_step(residency, memory, trace.uses);
  EXPECT_TRUE(residency.follows_table());
  std::vector<Use> forward(trace.uses.begin(), trace.uses.begin() + 4);
  run_step(residency, memory, forward);  // ends early
  run_step(residency, memory, forward);
  EXPECT_TRUE(residency.follows_table());
  EXPECT_EQ(residency.table()->uses_per_step, 4);
  run_step(residency, memory, {{{3}}, {{1}}});  // differs from the first use on
  EXPECT_FALSE(residency.follows_table());
  std::vector<Use> longer = {{{3}}, {{1}}, {{0}}};
  run_step(residency, memory, longer);  // goes on after the last use of the table
  EXPECT_FALSE(residency.follows_table());
  run_step(residency, memory, longer);
  EXPECT_TRUE(residency.follows_table());
  EXPECT_EQ(residency.table()->uses_per_step, 3);
}

TEST(Residency, TableIsMadeAnewForAnotherRequest) {
  const Trace trace = small_trace(4);
  Residency residency(trace.chunks, {1000});
  Memory traced(trace.chunks, 1000);
  run_step(residency, traced, trace.uses);
  traced.run(residency.clear());
  const Request request{20, Policy::NextUse, StepEnd::Drop};
  residency.plan_with(request);
  EXPECT_EQ(residency.planned().uses, trace.uses);
  Memory memory(trace.chunks, request.capacity);
  for (int step = 0; step < 3; ++step) {
    run_step(residency, memory, trace.uses);
    memory.run(residency.clear());
    EXPECT_DOUBLE_EQ(memory.take_loaded(), loaded_bytes(trace, plan(trace, request)));
  }
}

// Steps with drawn changes: whatever differs, every use finds its chunks and memory keeps its capacity.
TEST(Residency, AnyStepRuns) {
  Dice dice(7);
  for (int i = 0; i < 300; ++i) {
    Trace trace = drawn_trace(dice, Sizes::Different);
    Request request{5 + dice.between(0, 6)};
    request.ahead = dice.between(0, 2);
    if (dice.between(0, 1) == 1) request.step_end = StepEnd::Drop;
    Residency residency(trace.chunks, request);
    Memory memory(trace.chunks, request.capacity);
    for (int step = 0; step < 12; ++step) {
      run_step(residency, memory, trace.uses);
      if (dice.between(0, 5) == 0) memory.run(residency.clear());
      if (dice.between(0, 2) > 0) continue;
      trace.uses[dice.between(0, static_cast<int>(trace.uses.size()) - 1)].chunks[0] = dice.between(0, 1);
      if (dice.between(0, 1) == 0 && trace.uses.size() > 1) trace.uses.pop_back();
    }
  }
}

// A chunk is needed until its own use ends, also while others begin.
TEST(Residency, UsesOverlap) {
  const std::vector<Chunk> chunks(4, Chunk{10});
  Residency residency(chunks, {30});
  Memory memory(chunks, 30);
  for (int step = 0; step < 4; ++step) {
    memory.run(residency.begin_step());
    for (const int first : {0, 1, 2, 1}) {
      memory.run(residency.before_use({first}));
      memory.run(residency.before_use({first + 1}));
      EXPECT_TRUE(memory.holds(first) && memory.holds(first + 1));
      memory.run(residency.after_use({first + 1}));
      EXPECT_TRUE(memory.holds(first));
      memory.run(residency.after_use({first}));
    }
    EXPECT_EQ(residency.follows_table(), step > 0);
  }
}

TEST(Residency, UsesThatDoNotFitAreRefused) {
  Residency residency(std::vector<Chunk>(2, Chunk{1024}), {1536});
  residency.begin_step();
  residency.before_use({0});
  try {
    residency.before_use({1});
    FAIL();
  } catch (const RunError& error) {
    EXPECT_STREQ(error.what(),
                 "parameters that are used together take 2.0 KiB, more than the 1.5 KiB that memory has for them");
  }
  EXPECT_THROW(residency.begin_step(), InternalError);
}

}  // namespace
}  // namespace braid::moves::residency_test
