// A cost model out of a simulated timeline is the model that made it.
#include "braid/schedule/measured_cost.h"

#include <gtest/gtest.h>

#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/simulate.h"

namespace braid::schedule::measured_cost_test {
namespace {

CostModel uneven_costs() {
  CostModel cost;
  cost.stages = {{3, 2, 1}, {4, 5, 2}, {1, 2, 3}, {2, 2, 6}};
  cost.transfer = 0.25;
  return cost;
}

TEST(MeasuredCost, IsTheModelThatMadeTheTimeline) {
  const Schedule schedule = with_comms(make_schedule("zb-v", {2, 6}));
  MeasuredCost measured;
  measured.add(simulate(schedule, uneven_costs()));
  const CostModel cost = measured.cost(4);
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_DOUBLE_EQ(cost.stages[stage].forward, uneven_costs().stages[stage].forward);
    EXPECT_DOUBLE_EQ(cost.stages[stage].input_grad, uneven_costs().stages[stage].input_grad);
    EXPECT_DOUBLE_EQ(cost.stages[stage].weight_grad, uneven_costs().stages[stage].weight_grad);
  }
}

TEST(MeasuredCost, FullBackwardsAreOnePass) {
  MeasuredCost measured;
  CostModel cost = uneven_costs();
  cost.stages.resize(2);
  measured.add(simulate(one_f_one_b(2, 4), cost));
  EXPECT_DOUBLE_EQ(measured.cost(2).stages[1].input_grad, 7);
  EXPECT_DOUBLE_EQ(measured.cost(2).stages[1].weight_grad, 0);
}

// An outlier, such as a first touch of memory, does not count; nor does what a fused pair took.
TEST(MeasuredCost, TakesMediansOfWhatRanAlone) {
  Timeline timeline;
  const Action fused{Op::Forward, 0, 3, Fusion::WithNext};
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 50},
                     {{Op::Forward, 0, 1}, 50, 52},
                     {{Op::Forward, 0, 2}, 52, 54},
                     {fused, 54, 64},
                     {{Op::FullBackward, 0, 0}, 54, 64},
                     {{Op::FullBackward, 0, 1}, 64, 67}}};
  MeasuredCost measured;
  measured.add(timeline);
  EXPECT_DOUBLE_EQ(measured.cost(1).stages[0].forward, 2);
  EXPECT_DOUBLE_EQ(measured.cost(1).stages[0].input_grad, 3);
}

}  // namespace
}  // namespace braid::schedule::measured_cost_test
