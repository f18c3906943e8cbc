// Pictures of the schedules of full backwards, and their rules over a grid of sizes.
#include "braid/schedule/generators/flush.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"

namespace braid::schedule::flush_test {
namespace {

TEST(Flush, NaivePicture) {
  EXPECT_EQ(grid(naive(3, 2)),
            "rank 0  F0 .  .  .  .  B0 F1 .  .  .  .  B1\n"
            "rank 1  .  F0 .  .  B0 .  .  F1 .  .  B1\n"
            "rank 2  .  .  F0 B0 .  .  .  .  F1 B1\n");
}

TEST(Flush, GpipePicture) {
  EXPECT_EQ(grid(gpipe(3, 4)),
            "rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3\n"
            "rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3\n"
            "rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3\n");
}

TEST(Flush, OneFOneBPicture) {
  EXPECT_EQ(grid(one_f_one_b(3, 4)),
            "rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3\n"
            "rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3\n");
}

TEST(Flush, OneFOneBWithFewerMicrobatchesThanRanks) {
  EXPECT_EQ(grid(one_f_one_b(4, 2)),
            "rank 0  F0 F1 .  .  .  .  .  B0 .  B1\n"
            "rank 1  .  F0 F1 .  .  .  B0 .  B1\n"
            "rank 2  .  .  F0 F1 .  B0 .  B1\n"
            "rank 3  .  .  .  F0 B0 F1 B1\n");
}

TEST(Flush, OneRankAlternates) {
  EXPECT_EQ(grid(one_f_one_b(1, 3)), "rank 0  F0 B0 F1 B1 F2 B2\n");
  EXPECT_EQ(grid(naive(1, 3)), "rank 0  F0 B0 F1 B1 F2 B2\n");
  EXPECT_EQ(grid(gpipe(1, 1)), "rank 0  F0 B0\n");
}

TEST(Flush, ThePromiseIsExact) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (const Schedule& schedule : {naive(p, m), gpipe(p, m), one_f_one_b(p, m)}) {
        EXPECT_EQ(peak_activations(schedule), schedule.promise.peak_activations) << schedule.name << p << " " << m;
        EXPECT_EQ(peak_pending_weight_grads(schedule), schedule.promise.peak_pending_weight_grads);
      }
      EXPECT_EQ(naive(p, m).promise.peak_activations, std::vector<int>(p, 1));
      EXPECT_EQ(gpipe(p, m).promise.peak_activations, std::vector<int>(p, m));
      for (int r = 0; r < p; ++r) EXPECT_EQ(one_f_one_b(p, m).promise.peak_activations[r], std::min(m, p - r));
    }
  }
}

}  // namespace
}  // namespace braid::schedule::flush_test
