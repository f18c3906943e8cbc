// Bubble rates as printed in Qi et al., "Zero Bubble Pipeline Parallelism" (2023), table 5, from the times of table 9.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/schedule/generators.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/summary.h"

namespace braid::schedule::published_rates_test {
namespace {

// Times in milliseconds as printed; sizes per layer and token, 34h + 5as before and 32h after the input-gradient pass
// (section 2.3 there; Korthikanti et al. 2022 for the first), in units of the hidden size's bytes with s = 1024.
struct Row {
  int p, m;
  double forward, input_grad, weight_grad, transfer;
  double activation, pending;
  int chunks;
  double one_f_one_b, interleaved, zb_h1, zb_h2, zb_1p, zb_2p;
};

constexpr Row kRows[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601, 201216, 73728, 3, 0.2431, 0.1055, 0.1585, 0.1083, 0.1585, 0.0433},
    {8, 32, 18.513, 18.086, 9.331, 0.626, 201216, 73728, 3, 0.1985, 0.0818, 0.1242, 0.0837, 0.1242, 0.0039},
    {8, 64, 18.546, 18.097, 9.321, 0.762, 201216, 73728, 3, 0.1240, 0.0443, 0.0674, 0.0444, 0.0674, 0.0026},
    {16, 48, 11.347, 11.248, 8.132, 0.377, 378880, 163840, 3, 0.2552, 0.1104, 0.1397, 0.0672, 0.1397, 0.0066},
    {16, 64, 11.307, 11.254, 8.101, 0.379, 378880, 163840, 3, 0.2082, 0.0852, 0.1088, 0.0516, 0.1088, 0.0054},
    {16, 128, 11.325, 11.308, 8.109, 0.378, 378880, 163840, 3, 0.1251, 0.0445, 0.0576, 0.0266, 0.0576, 0.0028},
};

double micro(double milliseconds) { return std::round(milliseconds * 1000); }

ScheduleRequest request_of(const Row& row) {
  ScheduleRequest request{.ranks = row.p, .microbatches = row.m};
  request.forward = micro(row.forward);
  request.input_grad = micro(row.input_grad);
  request.weight_grad = micro(row.weight_grad);
  request.transfer = micro(row.transfer);
  request.activation = row.activation;
  request.pending = row.pending;
  return request;
}

CostModel cost_of(const ScheduleRequest& request) {
  return {request.forward, request.input_grad, request.weight_grad, request.transfer};
}

// The longest time from a rank's first start to its last end.
double longest_span(const Schedule& schedule, const CostModel& cost) {
  double longest = 0;
  for (const auto& spans : simulate(schedule, cost).ranks) {
    longest = std::max(longest, spans.back().end - spans.front().begin);
  }
  return longest;
}

TEST(PublishedRates, OfSchedulesWithOneStagePerRank) {
  for (const Row& row : kRows) {
    const ScheduleRequest request = request_of(row);
    const std::pair<const char*, double> printed[] = {{"1f1b", row.one_f_one_b},
                                                      {"zb-h1", row.zb_h1},
                                                      {"zb-h2", row.zb_h2},
                                                      {"zb-1p", row.zb_1p},
                                                      {"zb-2p", row.zb_2p}};
    for (const auto& [name, rate] : printed) {
      const Schedule schedule = make_schedule(name, request);
      const Summary result = summary(schedule, simulate(schedule, cost_of(request)));
      EXPECT_NEAR(result.bubble_rate, rate, 0.5e-4) << name << " " << row.p << " " << row.m;
    }
  }
}

// The paper's figure leaves out p transfers that an in-order run has.
TEST(PublishedRates, OfTheInterleavedScheduleAfterTakingOutPTransfers) {
  for (const Row& row : kRows) {
    ScheduleRequest request = request_of(row);
    request.chunks = row.chunks;
    CostModel cost = cost_of(request);
    const double work = row.m * (cost.forward + cost.input_grad + cost.weight_grad);
    for (double* time : {&cost.forward, &cost.input_grad, &cost.weight_grad}) *time /= row.chunks;
    const double span = longest_span(make_schedule("interleaved", request), cost) - row.p * cost.transfer;
    EXPECT_NEAR((span - work) / span, row.interleaved, 0.5e-4) << row.p << " " << row.m;
  }
}

// Costs in microseconds.
TEST(PublishedRates, CostsOfTheSearchedOrders) {
  const std::pair<double, double> costs[] = {{1310405, 1152599}, {1678164, 1475535}, {3154286, 2949221},
                                             {1714461, 1484721}, {2202008, 1972943}, {4175516, 3946061}};
  for (size_t i = 0; i < std::size(kRows); ++i) {
    const ScheduleRequest request = request_of(kRows[i]);
    EXPECT_EQ(longest_span(make_schedule("zb-1p", request), cost_of(request)), costs[i].first) << i;
    EXPECT_EQ(longest_span(make_schedule("zb-2p", request), cost_of(request)), costs[i].second) << i;
  }
}

}  // namespace
}  // namespace braid::schedule::published_rates_test
