// Ranks on fewer cores than they are.

#include <gtest/gtest.h>

#include "braid/schedule/generators.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/simulate.h"
#include "tests/support/schedule_requests.h"

namespace braid::schedule::shared_cores_test {
namespace {

TEST(SharedCores, WhoIdlesLeavesItsCoreToTheOthers) {
  // On two cores each: F0 F1 .  .  B0--- F2 B1--- .  B2---
  //                    .  F0 B0--- F1 B1--- F2 B2---
  // On one: at full speed where only one of them computes, and at half of it else.
  EXPECT_EQ(grid(simulate_sharing(one_f_one_b(2, 3), {}, 1)),
            "rank 0  F0 F1--- .  .  B0--------- F2--- B1--------- .  B2---\n"
            "rank 1  .  F0--- B0--- F1--- B1--------- F2--- B2------\n");
}

TEST(SharedCores, OneCoreDoesAllTheWork) {
  for (const auto& traits : schedule_traits()) {
    ScheduleRequest request;
    request.ranks = 4;
    request.microbatches = 8;
    const Schedule schedule = make_schedule(traits.name, request);
    const CostModel cost{.forward = 1, .input_grad = 2, .weight_grad = 1.5};
    const Timeline alone = simulate(schedule, cost);
    double work = 0;
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) work += alone.busy(rank);
    EXPECT_NEAR(simulate_sharing(schedule, cost, 1).makespan(), work, 1e-9 * work) << traits.name;
    EXPECT_NEAR(simulate_sharing(schedule, cost, 4).makespan(), alone.makespan(), 1e-9 * work) << traits.name;
    const double between = simulate_sharing(schedule, cost, 2.5).makespan();
    EXPECT_GE(between, std::max(alone.makespan(), work / 2.5) * (1 - 1e-9)) << traits.name;
    EXPECT_LE(between, work) << traits.name;
  }
}

}  // namespace
}  // namespace braid::schedule::shared_cores_test
