// Transfers as PyTorch orders them, against the cases that PyTorch publishes.
#include <gtest/gtest.h>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators/dual_pipe.h"
#include "braid/schedule/generators/interleaved.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/validate.h"
#include "tests/support/schedule_requests.h"

namespace braid::paired_comms_test {
namespace {

// Source: PyTorch, test/distributed/pipelining/test_schedule.py, TestScheduleLowering, send_recv:
// simple_2_rank_2_stage.
TEST(PairedComms, TwoRanksAsPyTorch) {
  const Schedule schedule = with_paired_comms(one_f_one_b(2, 2), Pace::UnitTime);
  EXPECT_EQ(text(schedule.programs[0]), "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1");
  EXPECT_EQ(text(schedule.programs[1]), "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1");
  EXPECT_EQ(with_paired_comms(schedule, Pace::UnitTime), schedule);
}

// Source: the same file, v_2_rank_4_stage. The source calls the input-gradient pass of this case B; here it is I, since
// W follows.
TEST(PairedComms, AVOfFourStagesAsPyTorch) {
  const Schedule compute = from_csv(
      "0F0,0F1,,3F0,3I0,3F1,3I1,0I0,3W0,0I1,3W1,0W0,0W1\n"
      ",1F0,2F0,1F1,2F1,2I0,1I0,2I1,1I1,2W0,2W1,1W0,1W1\n",
      "v");
  const Schedule schedule = with_paired_comms(compute, Pace::UnitTime);
  EXPECT_EQ(text(schedule.programs[0]),
            "0F0 0SEND_F0 0F1 0SEND_F1 3RECV_F0 3F0 3I0 3SEND_B0 3RECV_F1 3F1 3I1 3SEND_B1 0RECV_B0 0I0 3W0 0RECV_B1 "
            "0I1 3W1 0W0 0W1");
  EXPECT_EQ(text(schedule.programs[1]),
            "1RECV_F0 1RECV_F1 1F0 2F0 2SEND_F0 1F1 2RECV_B0 2F1 2SEND_F1 2I0 2RECV_B1 1I0 1SEND_B0 2I1 1I1 1SEND_B1 "
            "2W0 2W1 1W0 1W1");
}

// Source: PyTorch, test/distributed/pipelining/artifacts/zb1p_2rank_2stagep_comms.csv: interleaved zero bubble after
// _merge_bw and _add_send_recv.
TEST(PairedComms, InterleavedZeroBubbleAsPyTorch) {
  const char table[] =
      "0F0,0SEND_F0,2RECV_F0,0F1,0SEND_F1,2RECV_F1,2F0,2SEND_F0,2F1,2SEND_F1,2RECV_B0,2B0,2SEND_B0,0F2,0SEND_F2,"
      "2RECV_B1,2B1,2SEND_B1,0F3,0SEND_F3,2RECV_F2,0RECV_B0,0B0,2F2,2SEND_F2,2RECV_F3,0RECV_B1,0B1,2F3,2SEND_F3,"
      "2RECV_B2,2B2,2SEND_B2,0F4,0SEND_F4,2RECV_B3,2B3,2SEND_B3,0F5,0SEND_F5,2RECV_F4,0RECV_B2,0B2,2F4,2SEND_F4,"
      "2RECV_F5,0RECV_B3,0B3,2F5,2SEND_F5,2RECV_B4,2B4,2SEND_B4,0F6,0SEND_F6,2RECV_B5,2B5,2SEND_B5,0F7,0SEND_F7,"
      "2RECV_F6,0RECV_B4,0B4,2F6,2SEND_F6,2RECV_F7,0RECV_B5,0B5,2F7,2SEND_F7,2RECV_B6,2B6,2SEND_B6,2RECV_B7,2B7,"
      "2SEND_B7,0RECV_B6,0B6,0RECV_B7,0B7\n"
      "1RECV_F0,1F0,1SEND_F0,1RECV_F1,1F1,1SEND_F1,3RECV_F0,3F0,3RECV_F1,3I0,3SEND_B0,1RECV_B0,3F1,1RECV_F2,3I1,"
      "3SEND_B1,1RECV_B1,3W0,1RECV_F3,1F2,1SEND_F2,1I0,1SEND_B0,3W1,3RECV_F2,1F3,1SEND_F3,1I1,1SEND_B1,1W0,3RECV_F3,"
      "3F2,3I2,3SEND_B2,1RECV_B2,1W1,1RECV_F4,3F3,3I3,3SEND_B3,1RECV_B3,3W2,1RECV_F5,1F4,1SEND_F4,1I2,1SEND_B2,3W3,"
      "3RECV_F4,1F5,1SEND_F5,1I3,1SEND_B3,1W2,3RECV_F5,3F4,3I4,3SEND_B4,1RECV_B4,1W3,1RECV_F6,3F5,3I5,3SEND_B5,"
      "1RECV_B5,3W4,1RECV_F7,1F6,1SEND_F6,1I4,1SEND_B4,3W5,3RECV_F6,1F7,1SEND_F7,1I5,1SEND_B5,1W4,3RECV_F7,3F6,3I6,"
      "3SEND_B6,1RECV_B6,1W5,3F7,3I7,3SEND_B7,1RECV_B7,3W6,1I6,1SEND_B6,3W7,1I7,1SEND_B7,1W6,1W7\n";
  const Schedule schedule = merge_backward(interleaved_zero_bubble({2, 8}));
  EXPECT_EQ(with_paired_comms(schedule, Pace::FirstChance).programs, from_csv(table, "zb1p").programs);
}

TEST(PairedComms, APairStaysOneAndItsReceivesComeBefore) {
  const Schedule schedule = with_paired_comms(dual_pipe(2, 4), Pace::FirstChance);
  EXPECT_EQ(text(schedule.programs[0]),
            "0F0 0SEND_F0 1RECV_F2 1F2 0F1 0SEND_F1 1RECV_F3 1B2 1SEND_B2 0RECV_B0 (1F3;0B0)OVERLAP_F_B 1B3 1SEND_B3 "
            "0RECV_B1 0I1 0W1");
}

// The order may post a receive early, never late: with room in buffers every schedule can run.
TEST(PairedComms, EverySizeIsSound) {
  for (const auto& named : valid_requests(5, 10)) {
    for (const Pace pace : {Pace::FirstChance, Pace::UnitTime}) {
      const Schedule schedule = with_paired_comms(with_grad_sync(named.schedule()), pace);
      EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "") << named.text();
    }
  }
}

}  // namespace
}  // namespace braid::paired_comms_test
