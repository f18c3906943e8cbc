// Versions and staleness of hand-written asynchronous programs.
#include "braid/schedule/version_plan.h"

#include <gtest/gtest.h>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"

namespace braid::schedule::version_plan_test {
namespace {

using Ints = std::vector<int>;

Ints versions(const VersionPlan& plan, int stage, int microbatches) {
  Ints all;
  for (int micro = 0; micro < microbatches; ++micro) all.push_back(plan.version(stage, micro));
  return all;
}

// Three stages, five minibatches of one microbatch.
Schedule pipedream() {
  return from_csv(
      "0F0,0F1,0F2,0B0,0UPDATE0,0F3,0B1,0UPDATE1,0F4,0B2,0UPDATE2,0B3,0UPDATE3,0B4,0UPDATE4\n"
      "1F0,1F1,1B0,1UPDATE0,1F2,1B1,1UPDATE1,1F3,1B2,1UPDATE2,1F4,1B3,1UPDATE3,1B4,1UPDATE4\n"
      "2F0,2B0,2UPDATE0,2F1,2B1,2UPDATE1,2F2,2B2,2UPDATE2,2F3,2B3,2UPDATE3,2F4,2B4,2UPDATE4\n",
      "pipedream");
}

// Narayanan et al., "PipeDream" (2019), section 3.3: stage s of n (from 0) is n - 1 - s updates late once it is full.
TEST(VersionPlan, EachStageUsesItsNewest) {
  const VersionPlan plan(pipedream(), VersionRule::Own);
  EXPECT_TRUE(plan.asynchronous());
  EXPECT_EQ(plan.num_updates(), 5);
  EXPECT_EQ(versions(plan, 0, 5), (Ints{0, 0, 0, 1, 2}));
  EXPECT_EQ(versions(plan, 1, 5), (Ints{0, 0, 1, 2, 3}));
  EXPECT_EQ(versions(plan, 2, 5), (Ints{0, 1, 2, 3, 4}));
  EXPECT_EQ(plan.staleness(0, 4), 2);
  EXPECT_EQ(plan.staleness(1, 4), 1);
  EXPECT_EQ(plan.staleness(2, 4), 0);
  EXPECT_EQ(plan.most_stale(), 2);
}

// The same section: with vertical sync all stages use what the first one used.
TEST(VersionPlan, VerticalSyncFollowsTheFirstStage) {
  const VersionPlan plan(pipedream(), VersionRule::Vertical);
  for (int stage = 0; stage < 3; ++stage) EXPECT_EQ(versions(plan, stage, 5), (Ints{0, 0, 0, 1, 2}));
}

// "PipeDream-2BW" (2021), section 3.1: microbatch k (from 1) of groups of m uses max(floor((k - 1) / m) - 1, 0).
TEST(VersionPlan, DoubleBufferedIsOneUpdateLate) {
  const Schedule schedule = from_csv(
      "0F0,0F1,0B0,0F2,0B1,0UPDATE1,0F3,0B2,0F4,0B3,0UPDATE3,0F5,0B4,0B5,0UPDATE5\n"
      "1F0,1B0,1F1,1B1,1UPDATE1,1F2,1B2,1F3,1B3,1UPDATE3,1F4,1B4,1F5,1B5,1UPDATE5\n",
      "2bw");
  const VersionPlan plan(schedule, VersionRule::DoubleBuffered);
  for (int stage = 0; stage < 2; ++stage) {
    for (int k = 1; k <= 6; ++k) EXPECT_EQ(plan.version(stage, k - 1), std::max((k - 1) / 2 - 1, 0));
  }
  EXPECT_EQ(plan.update_begin(1), 2);
  EXPECT_EQ(plan.update_end(1), 4);
  EXPECT_EQ(plan.most_stale(), 1);
}

TEST(VersionPlan, ASynchronousStepHasOneUpdateAtItsEnd) {
  const VersionPlan plan(one_f_one_b(3, 4), VersionRule::Own);
  EXPECT_FALSE(plan.asynchronous());
  EXPECT_EQ(plan.num_updates(), 1);
  EXPECT_EQ(plan.update_begin(0), 0);
  EXPECT_EQ(plan.update_end(0), 4);
  EXPECT_EQ(plan.most_stale(), 0);
}

}  // namespace
}  // namespace braid::schedule::version_plan_test
