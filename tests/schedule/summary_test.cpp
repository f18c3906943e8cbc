// Published makespans, closed forms and printed bubble rates.
#include "braid/schedule/summary.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/simulate.h"

namespace braid::schedule::summary_test {
namespace {

Summary summary_of(const Schedule& schedule, const CostModel& cost = {}) {
  return summary(schedule, simulate(schedule, cost));
}

TEST(Summary, FourRanksEightMicrobatches) {
  const Summary gpipe_summary = summary_of(gpipe(4, 8));
  EXPECT_EQ(gpipe_summary.makespan, 33);
  EXPECT_EQ(gpipe_summary.bubble_time, 9);
  EXPECT_EQ(gpipe_summary.bubble_fraction, 9.0 / 33);
  EXPECT_EQ(gpipe_summary.span_bubble, 9);
  EXPECT_EQ(gpipe_summary.peak_activations, (std::vector<int>{8, 8, 8, 8}));
  const Summary one = summary_of(one_f_one_b(4, 8));
  EXPECT_EQ(one.makespan, 33);
  EXPECT_EQ(one.bubble_time, 9);
  EXPECT_EQ(one.bubble_rate, 9.0 / 33);
  EXPECT_EQ(one.peak_activations, (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(one.peak_pending_weight_grads, (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(one.weight_versions, 1);
}

TEST(Summary, ClosedFormOfTheBubble) {
  for (int p = 1; p <= 7; ++p) {
    for (int m = 1; m <= 14; ++m) {
      for (const CostModel& cost : {CostModel{}, CostModel{2, 1, 4}, CostModel{0.5, 3, 0.25}}) {
        const double both = cost.forward + cost.input_grad + cost.weight_grad;
        for (const Schedule& schedule : {gpipe(p, m), one_f_one_b(p, m)}) {
          const Summary result = summary_of(schedule, cost);
          EXPECT_EQ(result.bubble_time, (p - 1) * both) << schedule.name << " " << p << " " << m;
          EXPECT_EQ(result.makespan, (m + p - 1) * both);
          EXPECT_DOUBLE_EQ(result.bubble_fraction, (p - 1.0) / (m + p - 1));
        }
      }
    }
  }
}

// Source: Qi et al., "Zero Bubble Pipeline Parallelism" (2023), times of table 9 in ms, 1F1B column of table 5.
TEST(Summary, PrintedBubbleRatesOfOneFOneB) {
  struct Case {
    int p, m;
    CostModel cost;
    double rate;
  };
  const Case cases[] = {
      {8, 24, {18.522, 18.086, 9.337, 0.601}, 0.2431},  {8, 32, {18.513, 18.086, 9.331, 0.626}, 0.1985},
      {8, 64, {18.546, 18.097, 9.321, 0.762}, 0.1240},  {16, 48, {11.347, 11.248, 8.132, 0.377}, 0.2552},
      {16, 64, {11.307, 11.254, 8.101, 0.379}, 0.2082}, {16, 128, {11.325, 11.308, 8.109, 0.378}, 0.1251},
  };
  for (const Case& c : cases) {
    EXPECT_NEAR(summary_of(one_f_one_b(c.p, c.m), c.cost).bubble_rate, c.rate, 0.5e-4) << c.p << " " << c.m;
    EXPECT_NEAR(summary_of(with_comms(one_f_one_b(c.p, c.m)), c.cost).bubble_rate, c.rate, 0.5e-4) << c.p << " " << c.m;
  }
}

// ZB-H1 at p = 4, m = 8, written out: warm-up p-1-r forwards, W lags I by r. Its makespan is 27, and each rank holds
// 4, 3, 2, 1 microbatches awaiting I, but 4, 4, 4, 4 awaiting W. Source: Qi et al., section 2 and figure 2.
TEST(Summary, ZeroBubbleTableFromOutside) {
  std::string table;
  for (int rank = 0; rank < 4; ++rank) {
    const auto put = [&](char op, int micro) { table += std::to_string(rank) + op + std::to_string(micro) + ","; };
    int weights = 0;
    for (int f = 0; f < 3 - rank; ++f) put('F', f);
    for (int i = 0; i < 8; ++i) {
      if (3 - rank + i < 8) put('F', 3 - rank + i);
      put('I', i);
      if (i + 1 > rank) put('W', weights++);
    }
    while (weights < 8) put('W', weights++);
    table += "\n";
  }
  const Schedule schedule = from_csv(table, "zb-h1");
  const Summary result = summary_of(schedule);
  EXPECT_EQ(result.makespan, 27);
  EXPECT_EQ(result.bubble_time, 3);
  EXPECT_EQ(result.peak_activations, (std::vector<int>{4, 3, 2, 1}));
  EXPECT_EQ(result.peak_pending_weight_grads, (std::vector<int>{4, 4, 4, 4}));
}

TEST(Summary, SpanBubbleLeavesOutWaitingAtTheEnds) {
  Schedule schedule = gpipe(2, 1);
  Timeline timeline;
  timeline.ranks = {{{{Op::Forward, 0, 0}, 0, 1}, {{Op::RecvBackward, 0, 0}, 1, 4}, {{Op::FullBackward, 0, 0}, 4, 6}},
                    {{{Op::RecvForward, 1, 0}, 0, 1}, {{Op::Forward, 1, 0}, 1, 2}, {{Op::FullBackward, 1, 0}, 2, 4}}};
  const Summary result = summary(schedule, timeline);
  EXPECT_EQ(result.span_bubble, 3);  // rank 0 between F0 and B0; rank 1 has none
  EXPECT_EQ(result.bubble_rate, 0.5);
}

TEST(Summary, EmptyIsZero) {
  const Summary result = summary(Schedule{}, Timeline{});
  EXPECT_EQ(result.makespan, 0);
  EXPECT_EQ(result.bubble_fraction, 0);
  EXPECT_EQ(result.bubble_rate, 0);
}

}  // namespace
}  // namespace braid::schedule::summary_test
