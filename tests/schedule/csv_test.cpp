// Action tables, both ways, and one of PyTorch's own.
#include "braid/schedule/csv.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/validate.h"
#include "tests/support/schedule_requests.h"
#include "tests/support/split_backward.h"

namespace braid::schedule::csv_test {
namespace {

// Source: PyTorch, test/distributed/pipelining/artifacts/zb1p_2rank_2stagep_compute.csv (interleaved zero bubble).
const char kZeroBubble[] =
    "0F0,0F1,2F0,,2F1,2I0,2W0,0F2,2I1,2W1,0F3,0I0,0W0,2F2,0I1,0W1,2F3,2I2,2W2,0F4,2I3,2W3,0F5,0I2,0W2,2F4,0I3,0W3,2F5,"
    "2I4,2W4,0F6,2I5,2W5,0F7,0I4,0W4,2F6,0I5,0W5,2F7,2I6,2W6,2I7,2W7,0I6,0W6,0I7,0W7\n"
    ",1F0,1F1,3F0,3I0,3F1,3I1,3W0,1F2,1I0,3W1,1F3,1I1,1W0,3F2,3I2,1W1,3F3,3I3,3W2,1F4,1I2,3W3,1F5,1I3,1W2,3F4,3I4,1W3,"
    "3F5,3I5,3W4,1F6,1I4,3W5,1F7,1I5,1W4,3F6,3I6,1W5,3F7,3I7,3W6,1I6,3W7,1I7,1W6,1W7\n";

TEST(Csv, IdleSlotsAreEmptyCells) {
  EXPECT_EQ(to_csv(one_f_one_b(2, 2)),
            "0F0,0F1,,0B0,,0B1\n"
            ",1F0,1B0,1F1,1B1\n");
  EXPECT_EQ(to_csv(with_comms(gpipe(2, 1))),
            "0F0,0SEND_F0,0RECV_B0,0B0\n"
            "1RECV_F0,1F0,1B0,1SEND_B0\n");
}

TEST(Csv, ReadsWhatItWrites) {
  for (const auto& named : valid_requests(4, 8)) {
    const Schedule made = named.schedule();
    for (const Schedule& schedule : {made, with_comms(with_grad_sync(made)), with_grad_sync(split_backward(made))}) {
      Schedule expected = schedule;
      expected.promise = {};
      EXPECT_EQ(from_csv(to_csv(schedule), named.name), expected) << named.text();
    }
  }
}

// Two ranks, each with a copy of both stages; microbatches 2 and 3 start on rank 1.
const char kTwoDirections[] =
    "0F0,0F1,,1F2,1B2,(1F3;0B0)OVERLAP_F_B,1B3,0B1\n"
    "0F2,1F0,,0F3,1B0,(1F1;0B2)OVERLAP_F_B,1B1,0B3\n";

TEST(Csv, AStageOnTwoRanksIsMirrored) {
  const Schedule schedule = from_csv(kTwoDirections, "bidirectional");
  EXPECT_EQ(schedule.stage_rank, (std::vector<int>{0, 1}));
  EXPECT_EQ(schedule.mirror_rank, (std::vector<int>{1, 0}));
  EXPECT_EQ(schedule.mirror_from, 2);
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "");
  EXPECT_EQ(from_csv(to_csv(schedule), "bidirectional"), schedule);
}

TEST(Csv, TheTwoCopiesShareTheMicrobatchesAtOnePlace) {
  const auto fault = [](const char* table) -> std::string {
    try {
      from_csv(table, "bad");
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault("0F0,0B0\n0F1,0B1"), "");
  EXPECT_NE(fault("0F0,0B0,0F2\n1F7,0F1").find("row 2, column 2"), std::string::npos);
  EXPECT_NE(fault("0F0,0B0\n0REDUCE_GRAD").find("row 2, column 1"), std::string::npos);
  EXPECT_NE(fault("0F0\n0F1\n0F2").find("row 3, column 1"), std::string::npos);
  EXPECT_NE(fault("0F0,1F1\n0F1,1F2\n").find("not at one microbatch"), std::string::npos);
}

TEST(Csv, AFusedPairIsOneCell) {
  const Schedule schedule = from_csv("0F0,(0F1;0B0)OVERLAP_F_B,,0B1", "fused");
  ASSERT_EQ(schedule.programs[0].size(), 4u);
  EXPECT_EQ(schedule.programs[0][1], (Action{Op::Forward, 0, 1, Fusion::WithNext}));
  EXPECT_EQ(schedule.programs[0][2], (Action{Op::FullBackward, 0, 0}));
  EXPECT_EQ(to_csv(schedule), "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n");
}

TEST(Csv, WhatNeverRunsIsWrittenToo) {
  Schedule stuck = from_csv("0F0,0B0\n1B0,1F0", "stuck");
  EXPECT_EQ(to_csv(stuck), "0F0,0B0\n1B0,1F0\n");
  EXPECT_EQ(from_csv(to_csv(stuck), "stuck"), stuck);
}

TEST(Csv, ReadsPyTorchsTable) {
  const Schedule schedule = from_csv(kZeroBubble, "zb1p");
  EXPECT_EQ(schedule.num_stages, 4);
  EXPECT_EQ(schedule.num_microbatches, 8);
  EXPECT_EQ(schedule.stage_rank, (std::vector<int>{0, 1, 0, 1}));
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "");
  EXPECT_EQ(print(schedule, validate(with_comms(with_grad_sync(schedule)), SendMode::Buffered)), "");
  EXPECT_EQ(peak_activations(schedule), (std::vector<int>{4, 3}));
  EXPECT_EQ(from_csv(to_csv(schedule), "zb1p"), schedule);
}

TEST(Csv, WindowsLinesAndBlanksAreFine) {
  EXPECT_EQ(from_csv("0F0, 0B0\r\n, 1F0 ,1B0,\r\n", "1f1b"), from_csv("0F0,0B0\n1F0,1B0", "1f1b"));
}

TEST(Csv, ABlankRowIsRefusedAndAnIdleRankIsWrittenAsOne) {
  const auto keys = [](const char* table) {
    std::vector<std::string> keys;
    try {
      from_csv(table, "blank");
    } catch (const ConfigError& error) {
      for (const auto& problem : error.problems()) keys.push_back(problem.key);
    }
    return keys;
  };
  EXPECT_EQ(keys("0F0,0B0\n\n1F0,1B0\n"), std::vector<std::string>{"row 2"});
  EXPECT_EQ(keys("\n0F0,0B0\n \r\n1F0,1B0\n\n"), (std::vector<std::string>{"row 1", "row 3", "row 5"}));
  EXPECT_EQ(keys("\n\n"), std::vector<std::string>{"table"});
  EXPECT_EQ(keys("0F0,0B0\r\n1F0,1B0\r\n"), std::vector<std::string>{});
  const Schedule idle = from_csv("0F0,0B0\n,\n1F0,1B0\n,", "idle");
  EXPECT_EQ(idle.num_ranks(), 4);
  EXPECT_EQ(to_csv(idle), "0F0,,,0B0\n,\n,1F0,1B0\n,\n");
  EXPECT_EQ(from_csv(to_csv(idle), "idle"), idle);
}

TEST(Csv, EveryBadCellIsNamed) {
  try {
    from_csv("0F0,zap,0B0\n0F0,3F0,(0F7;7F3)OVERLAP_F_B\n", "bad");
    FAIL();
  } catch (const ConfigError& error) {
    std::vector<std::string> keys;
    for (const auto& problem : error.problems()) keys.push_back(problem.key);
    EXPECT_EQ(keys, (std::vector<std::string>{"row 1, column 2", "row 2, column 3", "stage 1", "stage 2",
                                              "row 2, column 1"}));
  }
  EXPECT_THROW(from_csv("\n", "empty"), ConfigError);
  EXPECT_THROW(from_csv("2000000000F0", "huge"), ConfigError);
}

}  // namespace
}  // namespace braid::schedule::csv_test
