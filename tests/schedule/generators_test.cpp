// Pictures of the schedules, and their rules over a grid of sizes.
#include "braid/schedule/generators.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/validate.h"

namespace braid {
namespace {

TEST(Generators, GpipePicture) {
  EXPECT_EQ(grid(gpipe(3, 4)),
            "rank 0  F0 F1 F2 F3 .  .  .  .  B0 B1 B2 B3\n"
            "rank 1  .  F0 F1 F2 F3 .  .  B0 B1 B2 B3\n"
            "rank 2  .  .  F0 F1 F2 F3 B0 B1 B2 B3\n");
}

TEST(Generators, OneFOneBPicture) {
  EXPECT_EQ(grid(one_f_one_b(3, 4)),
            "rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3\n"
            "rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3\n");
}

TEST(Generators, OneFOneBWithFewerMicrobatchesThanRanks) {
  EXPECT_EQ(grid(one_f_one_b(4, 2)),
            "rank 0  F0 F1 .  .  .  .  .  B0 .  B1\n"
            "rank 1  .  F0 F1 .  .  .  B0 .  B1\n"
            "rank 2  .  .  F0 F1 .  B0 .  B1\n"
            "rank 3  .  .  .  F0 B0 F1 B1\n");
}

TEST(Generators, OneRankAlternates) {
  EXPECT_EQ(grid(one_f_one_b(1, 3)), "rank 0  F0 B0 F1 B1 F2 B2\n");
  EXPECT_EQ(grid(gpipe(1, 1)), "rank 0  F0 B0\n");
}

TEST(Generators, EverySizeIsValidAndHoldsWhatItPromises) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      for (const auto& name : schedule_names()) {
        const Schedule schedule = make_schedule(name, {p, m});
        EXPECT_EQ(schedule.name, name);
        EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "") << name << " " << p << " " << m;
      }
      EXPECT_EQ(peak_activations(gpipe(p, m)), std::vector<int>(p, m));
      const std::vector<int> held = peak_activations(one_f_one_b(p, m));
      for (int r = 0; r < p; ++r) EXPECT_EQ(held[r], std::min(m, p - r)) << p << " " << m << " " << r;
      EXPECT_EQ(peak_pending_weight_grads(one_f_one_b(p, m)), held);
    }
  }
}

TEST(Generators, EveryFaultOfARequestIsNamed) {
  try {
    make_schedule("1f1c", {0, -2});
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.problems().size(), 3u);
    EXPECT_EQ(error.problems()[0], (Problem{"schedule", "1f1c", "must be one of gpipe, 1f1b", "1f1b"}));
    EXPECT_EQ(error.problems()[1].key, "ranks");
    EXPECT_EQ(error.problems()[2].value, "-2");
  }
}

}  // namespace
}  // namespace braid
