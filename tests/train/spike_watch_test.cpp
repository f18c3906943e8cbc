// Spikes against the formulas of the running mean and deviation.
#include "braid/train/spike_watch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/seeds.h"

namespace braid::train::spike_watch_test {
namespace {

double noise(int i) { return static_cast<double>(random_bits(3, static_cast<uint64_t>(i)) % 1000) / 1000; }

SpikeWatch watched(double threshold, int steps) {
  SpikeWatch watch(threshold);
  for (int i = 0; i < steps; ++i) watch.updated(3 + noise(i), std::exp(noise(i + 1000)));
  return watch;
}

TEST(RunningSpread, IsMeanAndDeviationOfFewValues) {
  RunningSpread spread;
  for (const double value : {1.0, 2.0, 6.0}) spread.add(value);
  EXPECT_DOUBLE_EQ(spread.mean, 3);
  EXPECT_DOUBLE_EQ(spread.variance, 14.0 / 3);
  EXPECT_DOUBLE_EQ(spread.deviations(3 + 2 * std::sqrt(14.0 / 3)), 2);
  EXPECT_LT(spread.deviations(0), 0);
}

// A level that stays for some windows is the mean, whatever was before.
TEST(RunningSpread, ForgetsWhatIsLongAgo) {
  RunningSpread spread;
  for (int i = 0; i < 500; ++i) spread.add(100);
  for (int i = 0; i < 3000; ++i) spread.add(5 + noise(i));
  EXPECT_NEAR(spread.mean, 5.5, 0.1);
  EXPECT_NEAR(spread.variance, 1.0 / 12, 0.03);
}

TEST(RunningSpread, ConstantValuesLeaveRoomForSomeDifference) {
  RunningSpread spread;
  for (int i = 0; i < 50; ++i) spread.add(2);
  EXPECT_NEAR(spread.deviations(2 + 3 * RunningSpread::kLeast), 3, 1e-9);
}

TEST(SpikeWatch, WhatIsNotFiniteIsSaidWithoutTheSignOfANan) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(SpikeWatch(0).spike(std::copysign(kNan, -1), kInfinity), "loss nan, gradient norm inf: not finite");
}

TEST(SpikeWatch, WhatIsNotFiniteIsASpikeAtAnyTime) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
  for (const SpikeWatch& watch : {SpikeWatch(0), watched(4, 50)}) {
    EXPECT_NE(watch.spike(nan, 1), "");
    EXPECT_NE(watch.spike(3.5, infinity), "");
    EXPECT_EQ(watch.spike(3.5, 1.5), "");
  }
}

TEST(SpikeWatch, OnlyALossOrANormAboveTheThresholdIsASpike) {
  const SpikeWatch watch = watched(6, 50);
  EXPECT_EQ(watch.spike(3.5 + 5 * 0.29, 1.5), "");
  EXPECT_NE(watch.spike(3.5 + 8 * 0.29, 1.5).find("loss"), std::string::npos);
  EXPECT_EQ(watch.spike(-1000, 1e-9), "");
  EXPECT_EQ(watch.spike(3.5, std::exp(0.5 + 5 * 0.29)), "");
  EXPECT_EQ(watch.spike(3.5, std::exp(0.5 + 8 * 0.29)).find("gradient norm"), 0u);
  EXPECT_EQ(watched(0, 50).spike(1e9, 1e9), "");
}

TEST(SpikeWatch, JudgesNothingFiniteBeforeItHasSeenEnough) {
  EXPECT_EQ(watched(6, SpikeWatch::kFewest - 1).spike(1e9, 1), "");
  EXPECT_NE(watched(6, SpikeWatch::kFewest).spike(1e9, 1), "");
}

TEST(SpikeWatch, SkipsSoManyInARow) {
  SpikeWatch watch = watched(6, 50);
  for (int i = 0; i < SpikeWatch::kMostSkips; ++i) {
    EXPECT_TRUE(watch.may_skip());
    watch.skipped();
  }
  EXPECT_FALSE(watch.may_skip());
  watch.updated(3.5, 1.5);
  EXPECT_TRUE(watch.may_skip());
}

TEST(SpikeWatch, CountersHoldAllOfIt) {
  SpikeWatch watch = watched(6, 30), other = watched(6, 70);
  watch.skipped();
  other.restore(watch.counters());
  EXPECT_EQ(other.counters(), watch.counters());
  EXPECT_EQ(watch.counters().size(), 6u);
  watch.updated(3.9, 2);
  other.updated(3.9, 2);
  EXPECT_EQ(other.counters(), watch.counters());
  EXPECT_EQ(other.spike(9, 1), watch.spike(9, 1));
  other.restore({});
  EXPECT_EQ(other.spike(9, 1), "");
}

TEST(SpikeWatch, WithoutAThresholdAGoodRunHasNothingToRemember) { EXPECT_TRUE(watched(0, 50).counters().empty()); }

}  // namespace
}  // namespace braid::train::spike_watch_test
