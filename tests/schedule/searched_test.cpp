// The searched schedules, order for order. Checksums were made with reference schedulers of the papers' authors
// (github.com/sail-sg/zero-bubble-pipeline-parallelism) and agree with them op for op.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "braid/schedule/generators/searched_v.h"
#include "braid/schedule/generators/searched_zero_bubble.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"
#include "tests/support/order_checksum.h"

namespace braid::schedule::searched_test {
namespace {

using Counts = std::vector<int>;

using Times = std::tuple<double, double, double, double>;  // F, I, W, transfer
using Sizes = std::tuple<double, double>;                  // activation, pending

ScheduleRequest request(int p, int m, const Times& times, const Sizes& sizes) {
  ScheduleRequest made{.ranks = p, .microbatches = m};
  std::tie(made.forward, made.input_grad, made.weight_grad, made.transfer) = times;
  std::tie(made.activation, made.pending) = sizes;
  return made;
}

const Times kUnequal = {10, 11, 7, 1};
const Times kEqual = {1, 1, 1, 0};
const Times kSmallModel = {18522, 18086, 9337, 601};  // Qi et al. (2023), table 9, in microseconds

TEST(Searched, CrcIsZlibs) { EXPECT_EQ(crc32("123456789"), 0xcbf43926u); }

TEST(Searched, ZeroBubblePictures) {
  EXPECT_EQ(grid(zb_1p(request(3, 4, kEqual, {1, 0.5}))),
            "rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3\n"
            "rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3\n"
            "rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
  EXPECT_EQ(grid(zb_2p(request(3, 4, kEqual, {1, 0.5}))),
            "rank 0  F0 F1 F2 F3 .  I0 W0 I1 W1 I2 W2 I3 W3\n"
            "rank 1  .  F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3\n"
            "rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 W3\n");
}

TEST(Searched, VPictures) {
  EXPECT_EQ(
      grid(v_half(2, 4)),
      "rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 .   0I0 3I1 3W1 3F2 0W0 0F3 0I1 3I2 3W2 3F3 3I3 0I2 3W3 0I3 0W1 0W2 0W3\n"
      "rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1I0 1W0 1F2 2F2 2I1 1I1 2W1 1F3 1W1 2F3 2I2 1I2 2I3 1I3 2W2 2W3 1W2 1W3\n");
  EXPECT_EQ(grid(v_min(2, 4)),
            "rank 0  0F0 0F1 .   3F0 3I0 3W0 .   0I0 0W0 3F1 3I1 3W1 0F2 0I1 0W1 3F2 3I2 3W2 0F3 0I2 0W2 3F3 3I3 3W3 . "
            "  0I3 0W3\n"
            "rank 1  .   1F0 2F0 .   .   2I0 1I0 1F1 2F1 2W0 1W0 2I1 1I1 1F2 2F2 2W1 1W1 2I2 1I2 1F3 2F3 2W2 1W2 2I3 "
            "1I3 2W3 1W3\n");
}

TEST(Searched, PrintedZeroBubbleOrders) {
  EXPECT_EQ(order_text(zb_1p(request(3, 4, kUnequal, {10, 6}))),
            "F0 F1 F2 I0 W0 F3 I1 W1 I2 W2 I3 W3|F0 F1 I0 F2 I1 W0 F3 I2 W1 I3 W2 W3|F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 "
            "W3");
  EXPECT_EQ(order_text(zb_2p(request(3, 4, kUnequal, {10, 6}))),
            "F0 F1 F2 F3 I0 W0 I1 W1 I2 W2 I3 W3|F0 F1 F2 I0 F3 I1 W0 I2 W1 I3 W2 W3|F0 I0 F1 I1 F2 I2 F3 I3 W0 W1 W2 "
            "W3");
}

TEST(Searched, PrintedVOrders) {
  EXPECT_EQ(order_text(v_half(3, 4)),
            "F0 F1 F2 f0 i0 w0 f1 i1 w1 I0 W0 F3 f2 i2 w2 I1 W1 f3 i3 I2 w3 W2 I3 W3|"
            "F0 F1 f0 f1 i0 w0 F2 I0 i1 w1 f2 W0 F3 I1 i2 w2 f3 W1 I2 i3 w3 W2 I3 W3|"
            "F0 f0 F1 f1 i0 w0 I0 W0 F2 f2 i1 I1 w1 F3 W1 f3 i2 I2 w2 W2 i3 I3 w3 W3");
  EXPECT_EQ(order_text(v_min(3, 4)),
            "F0 F1 F2 f0 i0 w0 f1 I0 i1 w1 W0 f2 F3 I1 i2 w2 W1 f3 i3 I2 w3 W2 I3 W3|"
            "F0 F1 f0 f1 i0 w0 I0 F2 W0 i1 f2 w1 I1 F3 W1 i2 f3 w2 I2 i3 w3 W2 I3 W3|"
            "F0 f0 F1 f1 i0 I0 w0 W0 F2 f2 i1 I1 w1 W1 F3 f3 i2 I2 w2 W2 i3 I3 w3 W3");
}

TEST(Searched, ZeroBubbleChecksums) {
  const Sizes sizes = {201216, 73728};
  EXPECT_EQ(order_checksum(zb_1p(request(3, 4, kUnequal, {10, 6}))), 0x2f5bacb7u);
  EXPECT_EQ(order_checksum(zb_1p(request(4, 8, kEqual, {2, 1}))), 0x3173acd7u);
  EXPECT_EQ(order_checksum(zb_1p(request(4, 12, kUnequal, {10, 6}))), 0xf7270698u);
  EXPECT_EQ(order_checksum(zb_1p(request(8, 24, kSmallModel, sizes))), 0xa251ca8au);
  EXPECT_EQ(order_checksum(zb_2p(request(3, 4, kUnequal, {10, 6}))), 0x5770187au);
  EXPECT_EQ(order_checksum(zb_2p(request(4, 8, kEqual, {2, 1}))), 0xd2b27ecau);
  EXPECT_EQ(order_checksum(zb_2p(request(4, 12, kUnequal, {10, 6}))), 0xe988b51cu);
  EXPECT_EQ(order_checksum(zb_2p(request(8, 24, kSmallModel, sizes))), 0x744b404du);
}

TEST(Searched, VChecksums) {
  EXPECT_EQ(order_checksum(v_half(3, 4)), 0x9aae73eeu);
  EXPECT_EQ(order_checksum(v_half(4, 8)), 0x071d7ea6u);
  EXPECT_EQ(order_checksum(v_half(4, 12)), 0x2c79bc42u);
  EXPECT_EQ(order_checksum(v_half(16, 32)), 0x2da01a60u);
  EXPECT_EQ(order_checksum(v_min(3, 4)), 0x487203a4u);
  EXPECT_EQ(order_checksum(v_min(4, 8)), 0x5cc321b0u);
  EXPECT_EQ(order_checksum(v_min(4, 12)), 0x27374e31u);
  EXPECT_EQ(order_checksum(v_min(16, 32)), 0x7717bef7u);
}

// The largest sum of sizes along each program: F adds `activation`, I leaves `pending` of it, W frees that.
std::vector<double> peak_sizes(const Schedule& schedule, double activation, double pending) {
  std::vector<double> peaks;
  for (const Program& program : schedule.programs) {
    double held = 0, most = 0;
    for (const Action& action : program) {
      if (action.op == Op::Forward) held += activation;
      if (action.op == Op::InputGrad) held -= activation - pending;
      if (action.op == Op::WeightGrad) held -= pending;
      most = std::max(most, held);
    }
    peaks.push_back(most);
  }
  return peaks;
}

TEST(Searched, ZeroBubbleKeepsItsLimitOfMemory) {
  using Peaks = std::vector<double>;
  EXPECT_EQ(peak_sizes(zb_1p(request(4, 12, kUnequal, {10, 6})), 10, 6), (Peaks{40, 36, 32, 28}));
  EXPECT_EQ(peak_sizes(zb_2p(request(4, 12, kUnequal, {10, 6})), 10, 6), (Peaks{78, 80, 78, 76}));
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 16; ++m) {
      for (const Sizes& sizes : {Sizes{10, 6}, Sizes{1, 0}, Sizes{1, 1}, Sizes{0.3, 0.1}}) {
        const auto [activation, pending] = sizes;
        const ScheduleRequest made = request(p, m, kUnequal, sizes);
        for (const auto& [schedule, limit] : {std::pair{zb_1p(made), p}, std::pair{zb_2p(made), 2 * p}}) {
          for (const double peak : peak_sizes(schedule, activation, pending)) {
            EXPECT_LE(peak, std::min(limit, m) * activation * (1 + 1e-12)) << schedule.name << " " << p << " " << m;
          }
          for (int rank = 0; rank < p; ++rank) {
            EXPECT_LE(peak_activations(schedule)[rank], schedule.promise.peak_activations[rank]);
            EXPECT_LE(peak_pending_weight_grads(schedule)[rank], schedule.promise.peak_pending_weight_grads[rank])
                << schedule.name << " " << p << " " << m;
          }
        }
      }
    }
  }
}

// Source: Qi et al. (2024), table 2 and section 3: half and a third of 1F1B's activations.
TEST(Searched, VsHoldWhatTheyPromise) {
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 2 * p + 2; ++m) {
      const Counts half = peak_pending_weight_grads(v_half(p, m));
      const Counts third = peak_pending_weight_grads(v_min(p, m));
      EXPECT_LE(*std::max_element(half.begin(), half.end()), 2 * ((p + 2) / 2)) << p << " " << m;
      EXPECT_LE(*std::max_element(third.begin(), third.end()), 2 * ((p + 4) / 3)) << p << " " << m;
      if (m < 2 * p) continue;
      EXPECT_EQ(half, Counts(p, 2 * ((p + 2) / 2))) << p << " " << m;
      Counts expected(p, 2 * ((p + 4) / 3));
      if (p % 3 == 2) --expected[0];
      EXPECT_EQ(third, expected) << p << " " << m;
    }
  }
}

TEST(Searched, ConditionsOfTimesAndSizes) {
  const std::vector<Problem> problems = searched_zero_bubble_problems(request(2, 4, {-1, 1, 1, -2}, {1, 2}));
  std::vector<std::string> keys;
  for (const Problem& problem : problems) keys.push_back(problem.key);
  EXPECT_EQ(keys, (std::vector<std::string>{"forward", "transfer", "pending"}));
  EXPECT_EQ(searched_zero_bubble_problems(request(2, 4, kEqual, {1, 1})), std::vector<Problem>{});
}

}  // namespace
}  // namespace braid::schedule::searched_test
