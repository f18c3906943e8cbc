// Pictures of the looped schedules, their published tables, conditions and peaks.
#include "braid/schedule/generators/interleaved.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/validate.h"

namespace braid::schedule::interleaved_test {
namespace {

const ScheduleRequest kSmall = {.ranks = 2, .microbatches = 4};

TEST(Interleaved, Picture) {
  EXPECT_EQ(grid(interleaved(kSmall)),
            "rank 0  0F0 0F1 2F0 2F1 0F2 2B0 0F3 2B1 2F2 0B0 2F3 0B1 .   2B2 .   2B3 0B2 0B3\n"
            "rank 1  .   1F0 1F1 3F0 3B0 3F1 3B1 1F2 1B0 1F3 1B1 3F2 3B2 3F3 3B3 1B2 1B3\n");
}

TEST(Interleaved, ZeroBubblePicture) {
  EXPECT_EQ(grid(interleaved_zero_bubble(kSmall)),
            "rank 0  0F0 0F1 2F0 2F1 .   2I0 2W0 0F2 2I1 2W1 0F3 0I0 0W0 2F2 0I1 0W1 2F3 2I2 2W2 2I3 2W3 0I2 0W2 0I3 "
            "0W3\n"
            "rank 1  .   1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 1W2 "
            "1W3\n");
}

TEST(Interleaved, LoopedBfsPicture) {
  EXPECT_EQ(grid(looped_bfs(kSmall)),
            "rank 0  0F0 0F1 0F2 0F3 2F0 2F1 2F2 2F3 .   .   2B3 2B2 2B1 2B0 0B3 0B2 0B1 0B0\n"
            "rank 1  .   1F0 1F1 1F2 1F3 3F0 3F1 3F2 3F3 3B3 3B2 3B1 3B0 1B3 1B2 1B1 1B0\n");
}

// Source: Megatron-LM, megatron/core/pipeline_parallel/schedules.py, the example at get_schedule_table:
// 2 ranks, groups of 3, 5 microbatches, 2 chunks.
TEST(Interleaved, MegatronsTableOfPasses) {
  std::vector<int> micros, chunks;
  for (const ChunkPass& pass : chunk_passes(5, 2, 3)) {
    micros.push_back(pass.micro);
    chunks.push_back(pass.chunk);
  }
  EXPECT_EQ(micros, (std::vector<int>{0, 1, 2, 0, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(chunks, (std::vector<int>{0, 0, 0, 1, 1, 1, 0, 0, 1, 1}));
  // On rank 1 the warm-up is one group.
  const Schedule schedule = interleaved({2, 5, 2, 3});
  EXPECT_EQ(grid(schedule).substr(grid(schedule).find("rank 1")),
            "rank 1  .   1F0 1F1 1F2 3F0 3B0 3F1 3B1 3F2 3B2 1F3 1B0 1F4 1B1 3F3 1B2 3F4 3B3 3B4 1B3 1B4\n");
}

// Source: PyTorch, test/distributed/pipelining/artifacts/zb1p_2rank_2stagep_compute.csv.
TEST(Interleaved, ZeroBubbleIsPyTorchsTable) {
  const char table[] =
      "0F0,0F1,2F0,,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,0F4,2I3,2W3,0F5,0I2,0W2,2F4,0I3,0W3,"
      "2F5,2I4,2W4,0F6,2I5,2W5,0F7,0I4,0W4,2F6,0I5,0W5,2F7,2I6,2W6,2I7,2W7,0I6,0W6,0I7,0W7\n"
      ",1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1F4,1I2,3W3,1F5,1I3,1W2,3F4,3I4,"
      "1W3,3F5,3I5,3W4,1F6,1I4,3W5,1F7,1I5,1W4,3F6,3I6,1W5,3F7,3I7,3W6,1I6,3W7,1I7,1W6,1W7\n";
  EXPECT_EQ(interleaved_zero_bubble({2, 8}).programs, from_csv(table, "zb1p").programs);
}

TEST(Interleaved, ThePromiseIsExact) {
  for (int p = 1; p <= 5; ++p) {
    for (int m = 1; m <= 15; ++m) {
      for (int chunks : {1, 2, 3}) {
        for (int group : {0, p, p + 1}) {
          const ScheduleRequest request{p, m, chunks, group};
          if (!interleaved_problems(request).empty()) continue;
          for (const Schedule& schedule :
               {interleaved(request), interleaved_zero_bubble(request), looped_bfs(request)}) {
            EXPECT_EQ(peak_activations(schedule), schedule.promise.peak_activations) << schedule.name;
            EXPECT_EQ(peak_pending_weight_grads(schedule), schedule.promise.peak_pending_weight_grads) << schedule.name;
          }
        }
      }
    }
  }
}

// Source: Narayanan et al. (2021), section 2.2 with Korthikanti et al. (2022): the first rank stores 1 + (p-1)/(pv) of
// all layers, that is vp + p - 1 chunks.
TEST(Interleaved, TheFirstRankHoldsMoreThanItsShare) {
  EXPECT_EQ(peak_activations(interleaved({4, 8, 2}))[0], 2 * 4 + 4 - 1);
  EXPECT_EQ(peak_activations(interleaved({4, 16, 3}))[0], 3 * 4 + 4 - 1);
}

TEST(Interleaved, ConditionsNameTheNearest) {
  using Problems = std::vector<Problem>;
  // PyTorch: 4 ranks, 10 microbatches are 2 groups of 5; 11 do not part in 2.
  EXPECT_EQ(interleaved_problems({4, 10}), Problems{});
  EXPECT_EQ(interleaved_problems({4, 11}),
            (Problems{{"microbatches", "11", "must be a multiple of microbatches / ranks (2)", "12"}}));
  EXPECT_EQ(interleaved_problems({4, 2}), Problems{});
  EXPECT_EQ(interleaved_problems({4, 11, 2, 4}),
            (Problems{{"group", "4", "must be from ranks (4) to microbatches (11) and leave a rest of 0 or at least 4",
                       "6"}}));
  EXPECT_EQ(interleaved_problems({4, 11, 2, 7}), Problems{});
  EXPECT_EQ(interleaved_problems({4, 11, 2, 12})[0].nearest, "11");
  EXPECT_EQ(interleaved_problems({4, 3, 2, 4}),
            (Problems{{"microbatches", "3", "must be at least ranks (4) when a group is given", "4"}}));
}

}  // namespace
}  // namespace braid::schedule::interleaved_test
