// Pictures of the handcrafted zero-bubble schedules and of ZB-V, and what they hold.
#include "braid/schedule/generators/zero_bubble.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"

namespace braid::schedule::zero_bubble_test {
namespace {

using Counts = std::vector<int>;

TEST(ZeroBubble, H1Picture) {
  EXPECT_EQ(grid(zb_h1(3, 4)),
            "rank 0  F0 F1 F2 .  .  I0 W0 F3 I1 W1 I2 W2 I3 W3\n"
            "rank 1  .  F0 F1 .  I0 F2 I1 W0 F3 I2 W1 I3 W2 W3\n"
            "rank 2  .  .  F0 I0 F1 I1 F2 I2 W0 F3 I3 W1 W2 W3\n");
}

TEST(ZeroBubble, H2Picture) {
  EXPECT_EQ(grid(zb_h2(3, 5)),
            "rank 0  F0 F1 F2 F3 F4 I0 W0 I1 W1 I2 W2 I3 W3 I4 W4\n"
            "rank 1  .  F0 F1 F2 I0 F3 I1 F4 I2 W0 I3 W1 I4 W2 W3 W4\n"
            "rank 2  .  .  F0 I0 F1 I1 F2 I2 F3 I3 F4 I4 W0 W1 W2 W3 W4\n");
}

TEST(ZeroBubble, VPicture) {
  EXPECT_EQ(grid(zb_v(2, 4)),
            "rank 0  0F0 0F1 0F2 3F0 3I0 3W0 3F1 3I1 3W1 0F3 0I0 0W0 3F2 3I2 3W2 0I1 0W1 3F3 3I3 3W3 0I2 0W2 0I3 0W3\n"
            "rank 1  .   1F0 2F0 1F1 2F1 2I0 2W0 1F2 1I0 1W0 2F2 2I1 2W1 1F3 1I1 1W1 2F3 2I2 2W2 1I2 2I3 1I3 1W2 2W3 "
            "1W3\n");
}

TEST(ZeroBubble, OneRankNeverWaits) {
  EXPECT_EQ(grid(zb_h1(1, 2)), "rank 0  F0 I0 W0 F1 I1 W1\n");
  EXPECT_EQ(grid(zb_h2(1, 2)), grid(zb_h1(1, 2)));
  EXPECT_EQ(grid(zb_v(1, 2)), "rank 0  0F0 1F0 1I0 1W0 0F1 0I0 0W0 1F1 1I1 1W1 0I1 0W1\n");
}

// Source: Qi et al., section 2: stage i (from 1) of p holds p-i+1 activations and i-1 pending weight gradients more
// (ZB-H1); 2p-2i+1 and 2i-2 (ZB-H2).
TEST(ZeroBubble, HoldsWhatThePaperSays) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 14; ++m) {
      const Schedule one = zb_h1(p, m);
      const Schedule two = zb_h2(p, m);
      for (int r = 0; r < p; ++r) {
        EXPECT_EQ(peak_activations(one)[r], std::min(m, p - r)) << p << " " << m << " " << r;
        EXPECT_EQ(peak_activations(two)[r], std::min(m, 2 * (p - r) - 1)) << p << " " << m << " " << r;
      }
      EXPECT_EQ(peak_pending_weight_grads(one), Counts(p, std::min(m, p)));
      EXPECT_EQ(peak_pending_weight_grads(two), Counts(p, std::min(m, 2 * p - 1)));
      for (const Schedule& schedule : {one, two}) {
        EXPECT_EQ(peak_activations(schedule), schedule.promise.peak_activations);
        EXPECT_EQ(peak_pending_weight_grads(schedule), schedule.promise.peak_pending_weight_grads);
      }
    }
  }
}

TEST(ZeroBubble, TheVHoldsTheSameEverywhere) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 2 * p - 1; m <= 16; ++m) {
      EXPECT_EQ(peak_activations(zb_v(p, m)), Counts(p, 2 * std::min(m, p))) << p << " " << m;
      EXPECT_EQ(peak_pending_weight_grads(zb_v(p, m)), Counts(p, 2 * std::min(m, p))) << p << " " << m;
    }
  }
}

}  // namespace
}  // namespace braid::schedule::zero_bubble_test
