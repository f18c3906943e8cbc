// Whose turn it is, what counts, and that ranks with different clocks choose alike.

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/sync/sync_tuner.h"
#include "tests/sync/reducer_steps.h"

namespace braid::sync::trials_test {
namespace {

std::vector<int> turns(TimedTrials trials) {
  std::vector<int> all;
  for (; !trials.done(); trials.record(1)) all.push_back(trials.candidate());
  return all;
}

TEST(TimedTrials, TurnsByPattern) {
  EXPECT_EQ(turns(TimedTrials(2, 3, TimedTrials::Pattern::Alternating)), (std::vector<int>{0, 0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(turns(TimedTrials(3, 2, TimedTrials::Pattern::InBlocks)), (std::vector<int>{0, 0, 0, 1, 1, 1, 2, 2, 2}));
}

TEST(TimedTrials, TheMedianCountsAndDroppedStepsDoNot) {
  TimedTrials alternating(2, 3, TimedTrials::Pattern::Alternating);
  for (const double seconds : {100.0, 1.0, 20.0, 50.0, 10.0, 2.0, 30.0}) alternating.record(seconds);
  EXPECT_EQ(alternating.medians(), (std::vector<double>{2, 20}));
  TimedTrials blocks(2, 1, TimedTrials::Pattern::InBlocks);
  for (const double seconds : {100.0, 1.0, 200.0, 3.0}) blocks.record(seconds);
  EXPECT_EQ(blocks.medians(), (std::vector<double>{1, 3}));
  EXPECT_THROW(blocks.record(1), InternalError);
}

// seconds(rank, ways): what a step takes there. Returns what each rank heard, and what it uses in the end.
struct Chosen {
  std::vector<std::string> heard;
  SyncWays ways;
};
template <class Seconds>
std::vector<Chosen> choose(const TunerOptions& options, const Seconds& seconds) {
  return sync::tests::by_rank(2, [&](Communicator& world) {
    SyncTuner tuner(options, world);
    Chosen chosen;
    for (int step = 0; step < 50; ++step) {
      const auto said = tuner.step_over(seconds(world.rank(), tuner.ways()));
      if (said) chosen.heard.push_back(*said);
    }
    EXPECT_TRUE(tuner.done());
    chosen.ways = tuner.ways();
    return chosen;
  });
}

TEST(SyncTuner, TheSlowestRankDecidesForAll) {
  using enum TunerOptions::Choice;
  const TunerOptions options{.overlap = Measured};
  const auto seconds = [](int rank, const SyncWays& ways) {  // rank 0 alone would overlap
    if (rank == 0) return ways.overlap == Overlap::On ? 0.001 : 0.002;
    return ways.overlap == Overlap::On ? 0.004 : 0.003;
  };
  for (const Chosen& each : choose(options, seconds)) {
    EXPECT_EQ(each.ways.overlap, Overlap::Off);
    EXPECT_EQ(each.ways.bucket_mb, 25);
    ASSERT_EQ(each.heard.size(), 1u);
    EXPECT_EQ(each.heard[0],
              "sync.overlap = \"off\": 4.00 ms a step when buckets leave during backward, 3.00 ms when they leave "
              "after it");
  }
}

TEST(SyncTuner, BucketSizesAreComparedUnderTheChosenOverlap) {
  using enum TunerOptions::Choice;
  const auto seconds = [](int, const SyncWays& ways) {
    const bool best = ways.bucket_mb == (ways.overlap == Overlap::On ? 4 : 100);
    return (best ? 0.010 : 0.015) - (ways.overlap == Overlap::On ? 0.001 : 0);
  };
  for (const Chosen& each : choose({.overlap = Measured, .buckets = Measured}, seconds)) {
    EXPECT_EQ(each.ways, (SyncWays{Overlap::On, 4}));
    ASSERT_EQ(each.heard.size(), 2u);
    EXPECT_EQ(each.heard[1],
              "sync.bucket_mb = 4: a step takes 14.00 ms with 1, 9.00 ms with 4, 14.00 ms with 25, 14.00 ms with 100");
  }
  for (const Chosen& each : choose({.first = {Overlap::Off, 7}, .buckets = Measured}, seconds)) {
    EXPECT_EQ(each.ways, (SyncWays{Overlap::Off, 100}));
  }
}

TEST(SyncTuner, WhatIsGivenStays) {
  for (const Chosen& each : choose({.first = {Overlap::Off, 7}}, [](int, const SyncWays&) { return 1.0; })) {
    EXPECT_EQ(each.ways, (SyncWays{Overlap::Off, 7}));
    EXPECT_TRUE(each.heard.empty());
  }
}

}  // namespace
}  // namespace braid::sync::trials_test
