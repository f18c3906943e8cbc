// Pictures of DualPipe and DualPipeV, PyTorch's table, conditions and peaks.
#include "braid/schedule/generators/dual_pipe.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/grid.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/program_text.h"

namespace braid::schedule::dual_pipe_test {
namespace {

using Counts = std::vector<int>;
using Problems = std::vector<Problem>;

TEST(DualPipe, Picture) {
  EXPECT_EQ(grid(dual_pipe(2, 4)),
            "rank 0  0F0     1F2     0F1     1B2     1F3&0B0 1B3     0I1     0W1\n"
            "rank 1  0F2     1F0     0F3     1B0     1F1&0B2 1B1     0I3     0W3\n");
}

TEST(DualPipe, VPicture) {
  EXPECT_EQ(grid(dual_pipe_v(2, 4)),
            "rank 0  0F0     0F1     0F2     3F0     3I0     3W0     3F1     0F3&3B1 3F2&0B0 3B2     3F3&0B1 3B3     "
            "0I2     0W2     0I3     0W3\n"
            "rank 1  .       1F0     2F0     1F1     2F1     1F2     2B0     2F2&1B0 1F3&2B1 2F3&1B1 2B2     1B2     "
            "2I3     1I3     2W3     1W3\n");
}

// The second rank of each half sees the flows as the first of the other half does.
TEST(DualPipe, TheTwoHalvesAreMirrorImages) {
  const Schedule schedule = dual_pipe(6, 14);
  for (int rank = 0; rank < 6; ++rank) {
    Program image = schedule.programs[5 - rank];
    for (Action& action : image) action.micro = (action.micro + 7) % 14;
    EXPECT_EQ(text(image), text(schedule.programs[rank]));
  }
}

// With ranks and flows renamed, a half of DualPipe is DualPipeV.
TEST(DualPipe, HalfOfItIsTheV) {
  const Schedule whole = dual_pipe(8, 20);
  const Schedule half = dual_pipe_v(4, 10);
  for (int rank = 0; rank < 4; ++rank) {
    Program flows = whole.programs[rank];
    for (Action& action : flows) action.micro %= 10;
    EXPECT_EQ(text(flows), text(half.programs[rank]));
  }
}

// Source: PyTorch, test/distributed/pipelining/artifacts/dualpipev_4rank_10mb.csv.
TEST(DualPipe, TheVIsPyTorchsTable) {
  const char table[] =
      "0F0,0F1,0F2,0F3,0F4,0F5,0F6,7F0,7I0,7W0,7F1,7I1,7W1,7F2,7I2,7W2,7F3,(0F7;7B3)OVERLAP_F_B,(7F4;0B0)OVERLAP_F_B,"
      "(0F8;7B4)OVERLAP_F_B,(7F5;0B1)OVERLAP_F_B,(0F9;7B5)OVERLAP_F_B,(7F6;0B2)OVERLAP_F_B,7B6,(7F7;0B3)OVERLAP_F_B,"
      "7B7,(7F8;0B4)OVERLAP_F_B,7B8,(7F9;0B5)OVERLAP_F_B,7B9,0I6,0W6,0I7,0W7,0I8,0W8,0I9,0W9\n"
      "1F0,1F1,1F2,1F3,1F4,6F0,1F5,6F1,6I0,6W0,6F2,6I1,6W1,6F3,(1F6;6B2)OVERLAP_F_B,(6F4;1B0)OVERLAP_F_B,"
      "(1F7;6B3)OVERLAP_F_B,(6F5;1B1)OVERLAP_F_B,(1F8;6B4)OVERLAP_F_B,(6F6;1B2)OVERLAP_F_B,(1F9;6B5)OVERLAP_F_B,"
      "(6F7;1B3)OVERLAP_F_B,6B6,(6F8;1B4)OVERLAP_F_B,6B7,(6F9;1B5)OVERLAP_F_B,6B8,1B6,6I9,1I7,6W9,1I8,1W7,1I9,1W8,"
      "1W9\n"
      "2F0,2F1,2F2,5F0,2F3,5F1,2F4,5F2,5I0,5W0,5F3,(2F5;5B1)OVERLAP_F_B,(5F4;2B0)OVERLAP_F_B,(2F6;5B2)OVERLAP_F_B,"
      "(5F5;2B1)OVERLAP_F_B,(2F7;5B3)OVERLAP_F_B,(5F6;2B2)OVERLAP_F_B,(2F8;5B4)OVERLAP_F_B,(5F7;2B3)OVERLAP_F_B,"
      "(2F9;5B5)OVERLAP_F_B,(5F8;2B4)OVERLAP_F_B,5B6,(5F9;2B5)OVERLAP_F_B,5B7,2B6,5B8,2I7,5I9,2I8,2W7,2I9,5W9,2W8,"
      "2W9\n"
      "3F0,4F0,3F1,4F1,3F2,4F2,3F3,4F3,3F4,4B0,(4F4;3B0)OVERLAP_F_B,(3F5;4B1)OVERLAP_F_B,(4F5;3B1)OVERLAP_F_B,"
      "(3F6;4B2)OVERLAP_F_B,(4F6;3B2)OVERLAP_F_B,(3F7;4B3)OVERLAP_F_B,(4F7;3B3)OVERLAP_F_B,(3F8;4B4)OVERLAP_F_B,"
      "(4F8;3B4)OVERLAP_F_B,(3F9;4B5)OVERLAP_F_B,(4F9;3B5)OVERLAP_F_B,4B6,3B6,4B7,3B7,4I8,3I8,4I9,3I9,4W8,3W8,4W9,"
      "3W9\n";
  EXPECT_EQ(to_csv(from_csv(table, "dualpipev")).size(), to_csv(dual_pipe_v(4, 10)).size());
  EXPECT_EQ(dual_pipe_v(4, 10).programs, from_csv(table, "dualpipev").programs);
}

// Source: DeepSeek-V3, table 2: PP + 1 activations, on every rank; PP counts stages.
TEST(DualPipe, HoldsOneMoreThanStages) {
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 2 * p + 5; ++m) {
      EXPECT_EQ(peak_activations(dual_pipe_v(p, m)), Counts(p, 2 * p + 1)) << p << " " << m;
      EXPECT_EQ(peak_pending_weight_grads(dual_pipe_v(p, m)), Counts(p, 2 * p + 1)) << p << " " << m;
      if (p % 2 == 1 || m % 2 == 1) continue;
      EXPECT_EQ(peak_activations(dual_pipe(p, m)), Counts(p, p + 1)) << p << " " << m;
      EXPECT_EQ(peak_pending_weight_grads(dual_pipe(p, m)), Counts(p, p + 1)) << p << " " << m;
    }
  }
}

TEST(DualPipe, ConditionsNameTheNearest) {
  EXPECT_EQ(dual_pipe_problems({4, 8}), Problems{});
  EXPECT_EQ(dual_pipe_problems({3, 9}),
            (Problems{{"ranks", "3", "must be even, as every rank has a partner", "4"},
                      {"microbatches", "9", "must be even, one half for each direction", "10"}}));
  EXPECT_EQ(dual_pipe_problems({5, 3}), (Problems{{"ranks", "5", "must be even, as every rank has a partner", "6"},
                                                  {"microbatches", "3", "must be at least 2 x ranks (12)", "12"}}));
  EXPECT_EQ(dual_pipe_v_problems({3, 6}), Problems{});
  EXPECT_EQ(dual_pipe_v_problems({3, 5}), (Problems{{"microbatches", "5", "must be at least 2 x ranks (6)", "6"}}));
}

}  // namespace
}  // namespace braid::schedule::dual_pipe_test
