// Where a stage is cut: the embedding goes with what follows it, the head stays by itself.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/nn/segments.h"

namespace braid::nn::segment_plan_test {
namespace {

using enum Segment::Kept;
using Plan = std::vector<Segment>;

Plan plan(const char* policy, const StageBlocks& blocks) {
  return plan_segments(*spec::recompute_policy(policy), blocks);
}

TEST(SegmentPlan, WithoutSegmentsTheStageIsOne) {
  EXPECT_EQ(plan("none", {1, 4, 1}), (Plan{{0, 6, Graph}}));
  EXPECT_EQ(plan("selective", {0, 4, 0}), (Plan{{0, 4, Graph}}));
}

TEST(SegmentPlan, FullIsOneBlockEach) {
  EXPECT_EQ(plan("full", {1, 3, 1}), (Plan{{0, 2, Input}, {2, 3, Input}, {3, 4, Input}, {4, 5, Graph}}));
  EXPECT_EQ(plan("full", {0, 2, 0}), (Plan{{0, 1, Input}, {1, 2, Input}}));
}

TEST(SegmentPlan, EveryCountsBlocksInTheMiddle) {
  EXPECT_EQ(plan("every:2", {1, 5, 1}), (Plan{{0, 3, Input}, {3, 5, Input}, {5, 6, Input}, {6, 7, Graph}}));
  EXPECT_EQ(plan("every:2", {0, 4, 0}), (Plan{{0, 2, Input}, {2, 4, Input}}));
  EXPECT_EQ(plan("every:9", {1, 5, 0}), (Plan{{0, 6, Input}}));
}

TEST(SegmentPlan, ListedBlocksAreSegmentsBetweenGraphs) {
  EXPECT_EQ(plan("blocks:0-1+3", {1, 5, 1}),
            (Plan{{0, 2, Input}, {2, 3, Input}, {3, 4, Graph}, {4, 5, Input}, {5, 7, Graph}}));
  EXPECT_EQ(plan("blocks:1-3/2", {1, 5, 0}), (Plan{{0, 2, Graph}, {2, 4, Input}, {4, 5, Input}, {5, 6, Graph}}));
  EXPECT_EQ(plan("blocks:1-2/2", {0, 3, 0}), (Plan{{0, 1, Graph}, {1, 3, Input}}));
  EXPECT_EQ(plan("blocks:0-4", {1, 5, 1}), plan("full", {1, 5, 1}));
  EXPECT_EQ(plan("blocks:0-4/2", {0, 5, 0}), plan("every:2", {0, 5, 0}));
}

TEST(SegmentPlan, StagesOfOneEndAlone) {
  EXPECT_EQ(plan("full", {0, 0, 1}), (Plan{{0, 1, Graph}}));
  EXPECT_EQ(plan("full", {1, 0, 0}), (Plan{{0, 1, Input}}));
  EXPECT_THROW(plan("full", {0, 0, 0}), InternalError);
}

}  // namespace
}  // namespace braid::nn::segment_plan_test
