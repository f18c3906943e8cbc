// Makespans and bubbles of every schedule against the formulas of their papers, in the domains where those hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "braid/base/text.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/summary.h"
#include "tests/support/sampled.h"

namespace braid::schedule::closed_forms_test {
namespace {

Summary played(std::string_view name, const ScheduleRequest& request, const CostModel& cost = {}) {
  const Schedule schedule = make_schedule(name, request);
  return summary(schedule, simulate(schedule, cost));
}

int most_ranks() { return full_run() ? 12 : 6; }

TEST(ClosedForms, FourRanksEightMicrobatches) {
  const std::pair<const char*, double> makespans[] = {
      {"naive", 4 * 8 * 3}, {"gpipe", 33},  {"1f1b", 33}, {"interleaved", 57},    {"looped-bfs", 57},
      {"zb-h1", 27},        {"zb-h2", 27},  {"zb-v", 51}, {"interleaved-zb", 51}, {"zb-1p", 27},
      {"zb-2p", 27},        {"v-half", 53}, {"v-min", 59}};
  for (const auto& [name, makespan] : makespans) EXPECT_EQ(played(name, {4, 8}).makespan, makespan) << name;
  EXPECT_EQ(played("zb-h2", {4, 8}).span_bubble, 0);
  EXPECT_EQ(played("zb-v", {4, 8}).span_bubble, 0);
  EXPECT_EQ(played("zb-2p", {4, 8}).span_bubble, 0);
}

const CostModel kCosts[] = {{}, {2, 1.5, 1}, {0.5, 3, 0.25}, {1, 2, 2}};

TEST(ClosedForms, PlainModelParallelismUsesOneRankAtATime) {
  for (int p = 1; p <= most_ranks(); ++p) {
    for (const CostModel& cost : kCosts) {
      const double both = cost.forward + cost.input_grad + cost.weight_grad;
      EXPECT_EQ(played("naive", {p, 5}, cost).makespan, 5 * p * both);
    }
  }
}

// Narayanan et al. (2021), section 2.2: (p-1)(F+B)/v, here with the times of one chunk. m >= p.
TEST(ClosedForms, InterleavedAndLoopedBfs) {
  for (int p = 1; p <= most_ranks(); ++p) {
    for (int m = p; m <= 3 * p; ++m) {
      for (int chunks : {1, 2, 3}) {
        for (const CostModel& cost : kCosts) {
          const double both = cost.forward + cost.input_grad + cost.weight_grad;
          for (const char* name : {"interleaved", "looped-bfs"}) {
            const ScheduleRequest request{p, m, chunks};
            if (!schedule_problems(name, request).empty()) continue;
            EXPECT_EQ(played(name, request, cost).bubble_time, (p - 1) * both)
                << name << " " << p << " " << m << " " << chunks;
          }
        }
      }
    }
  }
}

// Qi et al. (2023), table 1: (p-1)(F+I-W), and (p-1)(F+I-2W) within a rank's span. W <= I and W <= F: a longer
// W fills the gap before the next I arrives and reaches past it.
TEST(ClosedForms, HandcraftedZeroBubble) {
  for (int p = 1; p <= most_ranks(); ++p) {
    for (int m = p; m <= 3 * p; ++m) {
      for (const CostModel& cost : kCosts) {
        if (cost.weight_grad > std::min(cost.forward, cost.input_grad)) continue;
        const double saved = cost.forward + cost.input_grad - cost.weight_grad;
        EXPECT_EQ(played("zb-h1", {p, m}, cost).bubble_time, (p - 1) * saved) << p << " " << m;
        if (m < 2 * p - 1) continue;
        EXPECT_EQ(played("zb-h2", {p, m}, cost).span_bubble, (p - 1) * (saved - cost.weight_grad)) << p << " " << m;
      }
    }
  }
}

// Qi et al. (2023), section 6: none at equal times.
TEST(ClosedForms, ZeroBubbleV) {
  for (int p = 1; p <= most_ranks(); ++p) {
    for (int m = 2 * p - 1; m <= 4 * p; ++m) EXPECT_EQ(played("zb-v", {p, m}).span_bubble, 0) << p << " " << m;
  }
}

// DeepSeek-V3, table 2: (PP/2-1)(F&B + B - 3W), PP counts stages. Exact for F = I, and while a pair takes the sum of
// its actions: ranks fuse different numbers of them, so a faster pair makes some ranks less busy than the busiest.
TEST(ClosedForms, DualPipe) {
  for (int p = 2; p <= most_ranks(); p += 2) {
    for (int m = 2 * p; m <= 4 * p; m += 2) {
      for (const CostModel& cost : {CostModel{1, 1, 1}, CostModel{2, 2, 1}, CostModel{3, 3, 2}}) {
        const double back = cost.input_grad + cost.weight_grad;
        const double bubble = cost.forward + 2 * back - 3 * cost.weight_grad;
        EXPECT_EQ(played("dualpipe", {p, m}, cost).bubble_time, (p / 2 - 1) * bubble) << p << " " << m;
        EXPECT_EQ(played("dualpipev", {p, m}, cost).bubble_time, (p - 1) * bubble) << p << " " << m;
      }
    }
  }
}

// Qi et al. (2024): with equal times and m >= 2p the bubble depends on p alone.
TEST(ClosedForms, VHalfAndVMin) {
  for (int p = 2; p <= most_ranks(); ++p) {
    for (int m = 2 * p; m <= 2 * p + 4; ++m) {
      const double half = p == 2 ? 1 : 3 * p - (p % 2 == 0 ? 7 : 4);
      EXPECT_EQ(played("v-half", {p, m}).bubble_time, half) << p << " " << m;
      EXPECT_EQ(played("v-min", {p, m}).bubble_time, 4 * p - (p % 3 == 0 ? 7 : 5)) << p << " " << m;
    }
  }
}

TEST(ClosedForms, SearchedOrdersAtUnequalTimes) {
  const CostModel cost{10, 11, 7, 1};
  ScheduleRequest request{4, 12};
  request.forward = 10, request.input_grad = 11, request.weight_grad = 7, request.transfer = 1;
  request.activation = 10, request.pending = 6;
  EXPECT_EQ(played("zb-1p", request, cost).makespan, 390);
  EXPECT_EQ(played("zb-2p", request, cost).makespan, 369);
  EXPECT_EQ(played("v-half", request, cost).makespan, 765);
  EXPECT_EQ(played("v-min", request, cost).makespan, 957);
  request.ranks = 3, request.microbatches = 4;
  EXPECT_EQ(played("zb-1p", request, cost).makespan, 148);
  EXPECT_EQ(played("zb-2p", request, cost).makespan, 137);
  EXPECT_EQ(played("v-half", request, cost).makespan, 301);
  EXPECT_EQ(played("v-min", request, cost).makespan, 327);
}

// ZB-1p is as short as ZB-H1 once the pipeline fills.
TEST(ClosedForms, SearchedOrdersAreNoLongerThanHandcraftedOnes) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 2 * p - 1; m <= 2 * p + 4; ++m) {
      ScheduleRequest request{p, m};
      request.forward = 9, request.input_grad = 8, request.weight_grad = 5, request.transfer = 1;
      const CostModel cost{9, 8, 5, 1};
      EXPECT_EQ(played("zb-1p", request, cost).makespan, played("zb-h1", request, cost).makespan) << p << " " << m;
    }
  }
}

// No flush: the order is 1F1B's and updates take no time here.
TEST(ClosedForms, AsynchronousOnesTakeAsLongAsOneFOneB) {
  for (const char* name : {"pipedream", "pipedream-2bw"}) EXPECT_EQ(played(name, {4, 8}).makespan, 33) << name;
}

}  // namespace
}  // namespace braid::schedule::closed_forms_test
