// Times and text forms of tables, by hand.
#include "braid/moves/timing.h"

#include <gtest/gtest.h>

#include "braid/moves/text.h"
#include "braid/schedule/generators.h"

namespace braid::moves::timing_test {
namespace {

const Trace kTrace{{{10}, {10}, {10, Content::Gradients}}, {{{0}}, {{1}}, {{2}}, {{2}}, {{1}}, {{0}}}};

TEST(Timing, LoadsRunBesideUsesAndWaitForWrites) {
  const Table table = plan(kTrace, {20});
  // A load or a write takes 2 s. Load of 2 in 1..3, needed at 2; write of 2 in 5..7, then the load of 0, needed at 6.
  const Timing timing = simulate(kTrace, table, 5, std::vector<double>(6, 1));
  EXPECT_EQ(timing.loads[0].begin, 1);
  EXPECT_EQ(timing.loads[0].end, 3);
  EXPECT_EQ(timing.uses[2].begin, 3);
  EXPECT_EQ(timing.evictions[1].begin, 5);
  EXPECT_EQ(timing.evictions[1].end, 7);
  EXPECT_EQ(timing.loads[1].begin, 7);
  EXPECT_EQ(timing.loads[1].end, 9);
  EXPECT_EQ(timing.uses[5].begin, 9);
  EXPECT_EQ(timing.waiting, 1 + 3);
  EXPECT_EQ(timing.total, 10);
}

// Six blocks, memory for four, and a disk that loads a block in the time of a use. The page of memory has these
// numbers.
TEST(Timing, SpaceAheadHidesLoads) {
  const Trace trace = trace_of(schedule::gpipe(1, 4), 0, make_stages({std::vector<int64_t>(6, 8)}));
  const std::vector<double> seconds(trace.uses.size(), 1);
  const Table full = plan(trace, {32});
  const Table ahead = plan(trace, {32, Policy::NextUse, StepEnd::Keep, 8});
  EXPECT_EQ(full.loads.size(), 16u);
  EXPECT_EQ(simulate(trace, full, 8, seconds).total, 64);
  EXPECT_EQ(ahead.loads.size(), 25u);
  EXPECT_EQ(simulate(trace, ahead, 8, seconds).total, 48);
  EXPECT_EQ(simulate(trace, ahead, 8, seconds).waiting, 0);
}

TEST(Text, Csv) {
  EXPECT_EQ(to_csv(kTrace, plan(kTrace, {20})),
            "after,move,chunk,bytes,before\n"
            "0,drop,0,10,\n"
            "0,load,2,10,2\n"
            "3,write,2,10,\n"
            "3,load,0,10,5\n");
}

TEST(Text, Grid) {
  EXPECT_EQ(grid(kTrace, plan(kTrace, {20})),
            "chunk 0  U . . . < U\n"
            "chunk 1  - U - - U -\n"
            "chunk 2  . < U U . .\n");
}

}  // namespace
}  // namespace braid::moves::timing_test
