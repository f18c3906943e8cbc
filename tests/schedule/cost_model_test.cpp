// Costs of fused pairs, of single stages, of recompute and update; the file of stage times.
#include "braid/schedule/cost_model.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/summary.h"

namespace braid::schedule::cost_model_test {
namespace {

// 1F1B on two ranks, the steady state of rank 0 fused.
const char kFused[] =
    "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
    "1F0,1B0,1F1,1B1\n";

TEST(CostModel, APairTakesTheSumUnlessToldOtherwise) {
  const Schedule schedule = from_csv(kFused, "fused");
  EXPECT_EQ(grid(simulate(schedule, {})),
            "rank 0  F0 .  .  .  F1&B0--- .  .  .  B1---\n"
            "rank 1  .  F0 B0--- .  .  .  F1 B1---\n");
  EXPECT_EQ(grid(simulate(schedule, {.overlapped = 2})),
            "rank 0  F0 .  .  .  F1&B0 .  .  .  B1---\n"
            "rank 1  .  F0 B0--- .  .  F1 B1---\n");
}

TEST(CostModel, AShareOfTheLayersTakesAShareOfTheTimes) {
  const CostModel half =
      with_share({.forward = 2, .input_grad = 4, .weight_grad = 6, .transfer = 1, .overlapped = 8, .update = 10}, 0.5);
  const Action forward{Op::Forward, 0, 1, Fusion::WithNext}, backward{Op::FullBackward, 0, 0};
  EXPECT_EQ(half.compute(forward), 1);
  EXPECT_EQ(half.compute(backward), 5);
  EXPECT_EQ(half.compute_pair(forward, backward), 4);
  EXPECT_EQ(half.compute({Op::Recompute, 0, 0}), 1);
  EXPECT_EQ(half.compute({Op::Update, 0, 0}), 5);
  EXPECT_EQ(half.transfer, 1);
}

TEST(CostModel, WhatAPairMakesIsThereAtItsEnd) {
  for (const double latency : {0.0, 0.25}) {
    const Timeline timeline = simulate(from_csv(kFused, "fused"), {.transfer = latency, .overlapped = 2});
    const auto& [first, second] = std::pair(timeline.ranks[0][1], timeline.ranks[0][2]);
    EXPECT_EQ(first.begin, 4 + 2 * latency);
    EXPECT_EQ(second.begin, first.begin);
    EXPECT_EQ(first.end, first.begin + 2);
    EXPECT_EQ(second.end, first.end);
    EXPECT_EQ(timeline.ranks[1][2].begin, first.end + latency);
    EXPECT_EQ(timeline.busy(0), 1 + 2 + 2);
  }
}

TEST(CostModel, APairCountsOnceInTheSummary) {
  const Schedule schedule = from_csv(kFused, "fused");
  const Summary result = summary(schedule, simulate(schedule, {.overlapped = 2}));
  EXPECT_EQ(result.makespan, 11);
  EXPECT_EQ(result.bubble_time, 5);  // rank 1 is busy for 6, rank 0 for 5
  EXPECT_EQ(result.span_bubble, 6);  // rank 0: 11 - 5
  EXPECT_EQ(result.bubble_rate, 5.0 / 11);
  EXPECT_EQ(result.peak_activations, (std::vector<int>{2, 1}));
}

TEST(CostModel, EveryStageMayHaveTimesOfItsOwn) {
  CostModel cost;
  cost.stages = {{.forward = 2, .input_grad = 1, .weight_grad = 1}, {.forward = 1, .input_grad = 3, .weight_grad = 0}};
  EXPECT_EQ(grid(simulate(gpipe(2, 2), cost)),
            "rank 0  F0--- F1--- .  .  .  .  B0--- .  B1---\n"
            "rank 1  .  .  F0 .  F1 B0------ B1------\n");
  EXPECT_EQ(cost.compute_pair({Op::Forward, 0, 1}, {Op::FullBackward, 1, 0}), 5);
  EXPECT_EQ(cost.compute_pair({Op::Forward, 0, 1}, {Op::InputGrad, 0, 0}), 3);
}

TEST(CostModel, RecomputeAndUpdateTakeTheirTimes) {
  const Schedule schedule = from_csv("0F0,0RECOMPUTE0,0B0,0UPDATE0\n", "all");
  EXPECT_EQ(simulate(schedule, {.forward = 3}).makespan(), 3 + 3 + 2);
  const Timeline timeline = simulate(schedule, {.recompute = 0.5, .update = 0.25});
  EXPECT_EQ(timeline.makespan(), 1 + 0.5 + 2 + 0.25);
  EXPECT_EQ(timeline.busy(0), timeline.makespan());
  CostModel cost{.recompute = 7, .update = 7};
  cost.stages = {{.forward = 4, .update = 1}};
  EXPECT_EQ(simulate(schedule, cost).makespan(), 4 + 4 + 2 + 1);
}

// The makespan is never below the busiest rank's work nor below one microbatch's way through all stages and back, and
// grows with every time.
TEST(CostModel, MakespansKeepTheirBounds) {
  for (const auto& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, {.ranks = 4, .microbatches = 8});
    double before = 0;
    for (const CostModel& cost :
         {CostModel{}, CostModel{1, 1, 1, 0.5}, CostModel{1, 2, 1, 0.5}, CostModel{3, 2, 1.5, 1}}) {
      const Timeline timeline = simulate(schedule, cost);
      double way = 0;
      for (int stage = 0; stage < schedule.num_stages; ++stage) {
        way += cost.forward + cost.input_grad;
        const bool crosses = stage > 0 && schedule.rank_of(stage, 0) != schedule.rank_of(stage - 1, 0);
        if (crosses) way += 2 * cost.transfer;
      }
      EXPECT_GE(timeline.makespan(), way) << name;
      EXPECT_GE(timeline.makespan(), timeline.busiest()) << name;
      EXPECT_GE(timeline.makespan(), before) << name;
      before = timeline.makespan();
    }
  }
}

TEST(StageTimes, ALineForEachStage) {
  const std::vector<StageTimes> read = parse_stage_times(
      "# profile of 3 stages\n"
      "1.5 1.25\t1   # the embedding is here\n"
      "\n"
      "1 1 1 0.5\r\n"
      "1e0 2 3 4 5",
      "times");
  EXPECT_EQ(read, (std::vector<StageTimes>{{1.5, 1.25, 1, {}, 0}, {1, 1, 1, 0.5, 0}, {1, 2, 3, 4, 5}}));
}

TEST(StageTimes, EveryFaultIsNamedWithItsLine) {
  try {
    parse_stage_times("1 1\n\n1 x 1\n1 1 1 1 1 1\n1 -1 1\n1 1 nan\n1 1e16 1\n", "times");
    FAIL();
  } catch (const ConfigError& error) {
    std::vector<std::string> keys;
    for (const auto& problem : error.problems()) keys.push_back(problem.key);
    EXPECT_EQ(keys, (std::vector<std::string>{"times:1", "times:3", "times:4", "times:5", "times:6", "times:7"}));
  }
  EXPECT_THROW(parse_stage_times("# nothing\n", "times"), ConfigError);
}

}  // namespace
}  // namespace braid::schedule::cost_model_test
