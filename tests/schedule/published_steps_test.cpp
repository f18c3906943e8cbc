// Step times as printed in Qi et al., "Zero Bubble Pipeline Parallelism" (2023), table 4, from the pass times of
// table 9. Transfers that occupy neither rank come out too short, the more of them a schedule has: the measured ranks
// waited for what they sent and for what they received.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/schedule/generators.h"
#include "braid/schedule/simulate.h"

namespace braid::schedule::published_steps_test {
namespace {

// Times in milliseconds; sizes as in published_rates_test.cpp; samples a second and device.
struct Row {
  int p, m, microbatch;
  double forward, input_grad, weight_grad, transfer;
  double activation, pending;
  double zb_2p, zb_1p, one_f_one_b, interleaved;
};

constexpr Row kRows[] = {
    {8, 24, 6, 18.522, 18.086, 9.337, 0.601, 201216, 73728, 14.5, 12.9, 11.8, 13.1},
    {8, 32, 6, 18.513, 18.086, 9.331, 0.626, 201216, 73728, 14.8, 13.4, 12.5, 13.4},
    {8, 64, 6, 18.546, 18.097, 9.321, 0.762, 201216, 73728, 14.9, 14.2, 13.6, 13.9},
    {16, 48, 1, 11.347, 11.248, 8.132, 0.377, 378880, 163840, 1.81, 1.61, 1.40, 1.54},
    {16, 64, 1, 11.307, 11.254, 8.101, 0.379, 378880, 163840, 1.83, 1.67, 1.49, 1.59},
    {16, 128, 1, 11.325, 11.308, 8.109, 0.378, 378880, 163840, 1.85, 1.76, 1.64, 1.66},
};

struct Errors {
  double sum = 0, worst = 0;
  int count = 0;
  void add(double error) {
    sum += error;
    worst = std::max(worst, error);
    ++count;
  }
};

// With ranks that wait for this share of each transfer: on either side of a pass for one that comes and one that goes.
double step_seconds(const Row& row, const std::string& name, double waiting) {
  ScheduleRequest request{.ranks = row.p, .microbatches = row.m};
  request.forward = row.forward;
  request.input_grad = row.input_grad;
  request.weight_grad = row.weight_grad;
  request.transfer = row.transfer;
  request.activation = row.activation;
  request.pending = row.pending;
  const double chunks = name == "interleaved" ? 3 : 1;
  request.chunks = static_cast<int>(chunks);
  const double waits = 2 * waiting * row.transfer;
  const CostModel cost{row.forward / chunks + waits, row.input_grad / chunks + waits, row.weight_grad / chunks,
                       row.transfer};
  double longest = 0;  // no rank waits for the others between steps, section 4 there
  for (const auto& spans : simulate(make_schedule(name, request), cost).ranks) {
    longest = std::max(longest, spans.back().end - spans.front().begin);
  }
  return longest / 1000;
}

Errors errors(double waiting) {
  Errors all;
  for (const Row& row : kRows) {
    double fastest = INFINITY, fastest_printed = 0;
    for (const auto& [name, samples] : {std::pair{"zb-2p", row.zb_2p},
                                        {"zb-1p", row.zb_1p},
                                        {"1f1b", row.one_f_one_b},
                                        {"interleaved", row.interleaved}}) {
      const double seconds = step_seconds(row, name, waiting), printed = row.m * row.microbatch / (samples * row.p);
      all.add(std::abs(seconds / printed - 1));
      if (seconds < fastest) fastest_printed = samples;
      fastest = std::min(fastest, seconds);
    }
    EXPECT_EQ(fastest_printed, row.zb_2p) << row.p << " " << row.m;
  }
  return all;
}

TEST(PublishedSteps, WithRanksThatWaitForTransfers) {
  const Errors waiting = errors(1), free = errors(0);
  EXPECT_LT(waiting.sum / waiting.count, 0.03);
  EXPECT_LT(waiting.worst, 0.07);
  EXPECT_GT(free.sum / free.count, 0.07);
}

}  // namespace
}  // namespace braid::schedule::published_steps_test
