// Pictures and updates of the schedules without a flush.
#include "braid/schedule/generators/asynchronous.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/program_text.h"

namespace braid::schedule::asynchronous_test {
namespace {

using Problems = std::vector<Problem>;

TEST(Asynchronous, PipeDreamUpdatesAfterEveryBackward) {
  const Schedule schedule = pipedream(3, 4);
  EXPECT_EQ(grid(schedule),
            "rank 0  F0 F1 F2 .  .  B0 F3 B1 .  B2 .  B3\n"
            "rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 .  B3\n"
            "rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3\n");
  EXPECT_EQ(text(schedule.programs[0]), "0F0 0F1 0F2 0B0 0UPDATE0 0F3 0B1 0UPDATE1 0B2 0UPDATE2 0B3 0UPDATE3");
  EXPECT_EQ(text(schedule.programs[2]), "2F0 2B0 2UPDATE0 2F1 2B1 2UPDATE1 2F2 2B2 2UPDATE2 2F3 2B3 2UPDATE3");
}

TEST(Asynchronous, DoubleBufferedUpdatesAfterEveryGroup) {
  const Schedule schedule = pipedream_2bw({3, 6});
  EXPECT_EQ(grid(schedule),
            "rank 0  F0 F1 F2 .  .  B0 F3 B1 F4 B2 F5 B3 .  B4 .  B5\n"
            "rank 1  .  F0 F1 .  B0 F2 B1 F3 B2 F4 B3 F5 B4 .  B5\n"
            "rank 2  .  .  F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 F5 B5\n");
  EXPECT_EQ(text(schedule.programs[0]), "0F0 0F1 0F2 0B0 0F3 0B1 0F4 0B2 0UPDATE2 0F5 0B3 0B4 0B5 0UPDATE5");
  EXPECT_EQ(text(pipedream_2bw({2, 6, 0, 3}).programs[1]),
            "1F0 1B0 1F1 1B1 1F2 1B2 1UPDATE2 1F3 1B3 1F4 1B4 1F5 1B5 1UPDATE5");
}

// Source: Narayanan et al. (2019), section 3.3: stage r of p stashes p - r versions; (2021), section 3.1: two.
TEST(Asynchronous, VersionsOfTheWeights) {
  for (int p = 1; p <= 6; ++p) {
    for (int m = 1; m <= 12; ++m) {
      const Schedule stashing = pipedream(p, m);
      EXPECT_EQ(stashing.promise.weight_versions, std::min(p, m));
      EXPECT_LE(weight_versions(stashing), std::min(p, m)) << p << " " << m;
      if (m >= 2 * p) {
        EXPECT_EQ(weight_versions(stashing), p);
      }
      EXPECT_EQ(peak_activations(stashing), stashing.promise.peak_activations);
      if (m % p != 0) continue;
      const Schedule buffered = pipedream_2bw({p, m});
      EXPECT_EQ(buffered.promise.weight_versions, m > p ? 2 : 1);
      EXPECT_LE(weight_versions(buffered), buffered.promise.weight_versions) << p << " " << m;
    }
  }
}

TEST(Asynchronous, ConditionsNameTheNearest) {
  EXPECT_EQ(pipedream_2bw_problems({4, 8}), Problems{});
  EXPECT_EQ(pipedream_2bw_problems({4, 9}),
            (Problems{{"microbatches", "9", "must be a multiple of the microbatches of an update (4)", "8"}}));
  EXPECT_EQ(pipedream_2bw_problems({4, 9, 0, 3}),
            (Problems{{"group", "3", "must be at least ranks (4): microbatches of an update", "4"}}));
  EXPECT_EQ(pipedream_2bw_problems({4, 2})[0].nearest, "4");
}

}  // namespace
}  // namespace braid::schedule::asynchronous_test
