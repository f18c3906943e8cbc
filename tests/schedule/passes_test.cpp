// The passes against drawings and against cases published with PyTorch.
#include "braid/schedule/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/generators/dual_pipe.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/validate.h"
#include "tests/support/schedule_requests.h"
#include "tests/support/split_backward.h"

namespace braid::schedule::passes_test {
namespace {

std::string row(const Program& program) { return text(program); }

Schedule schedule_of(std::vector<std::string> rows) {
  std::string table;
  for (auto& words : rows) {
    std::replace(words.begin(), words.end(), ' ', ',');
    table += words + "\n";
  }
  return from_csv(table, "test");
}

TEST(Passes, CommsPicture) {
  const Schedule schedule = with_comms(one_f_one_b(2, 2));
  EXPECT_EQ(row(schedule.programs[0]), "0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1");
  EXPECT_EQ(row(schedule.programs[1]), "1RECV_F0 1F0 1B0 1SEND_B0 1RECV_F1 1F1 1B1 1SEND_B1");
  EXPECT_TRUE(has_comms(schedule));
  EXPECT_EQ(with_comms(schedule), schedule);
}

// Source: PyTorch, test/distributed/pipelining/test_schedule.py, TestScheduleLowering, send_recv cases. PyTorch moves
// receives up to where their sends run, so for each rank the actions agree, and their order without the receives.
void expect_like_pytorch(const Schedule& ours, const Schedule& theirs) {
  ASSERT_EQ(ours.programs.size(), theirs.programs.size());
  for (size_t rank = 0; rank < ours.programs.size(); ++rank) {
    Program mine = ours.programs[rank];
    Program golden = theirs.programs[rank];
    const auto receives = [](const Action& action) {
      return action.op == Op::RecvForward || action.op == Op::RecvBackward;
    };
    const auto mine_end = std::stable_partition(mine.begin(), mine.end(), std::not_fn(receives));
    const auto golden_end = std::stable_partition(golden.begin(), golden.end(), std::not_fn(receives));
    std::sort(mine_end, mine.end());
    std::sort(golden_end, golden.end());
    EXPECT_EQ(row(mine), row(golden));
  }
}

TEST(Passes, CommsAgreeWithPyTorchOnTwoRanks) {
  expect_like_pytorch(with_comms(schedule_of({"0F0 0F1  0B0  0B1", " 1F0 1B0 1F1 1B1 "})),
                      schedule_of({"0F0 0SEND_F0 0F1 0SEND_F1 0RECV_B0 0B0 0RECV_B1 0B1",
                                   "1RECV_F0 1RECV_F1 1F0 1B0 1SEND_B0 1F1 1B1 1SEND_B1"}));
}

TEST(Passes, CommsAgreeWithPyTorchOnAVOfFourStages) {
  // The source calls the input-gradient pass of this case B; here it is I, since W follows.
  const Schedule compute = schedule_of(
      {"0F0 0F1  3F0 3I0 3F1 3I1 0I0 3W0 0I1 3W1 0W0 0W1", " 1F0 2F0 1F1 2F1 2I0 1I0 2I1 1I1 2W0 2W1 1W0 1W1"});
  const Schedule comms =
      schedule_of({"0F0 0SEND_F0 0F1 0SEND_F1 3RECV_F0 3F0 3I0 3SEND_B0 3RECV_F1 3F1 3I1 3SEND_B1 0RECV_B0 0I0 3W0 "
                   "0RECV_B1 0I1 3W1 "
                   "0W0 0W1",
                   "1RECV_F0 1RECV_F1 1F0 2F0 2SEND_F0 1F1 2RECV_B0 2F1 2SEND_F1 2I0 2RECV_B1 1I0 1SEND_B0 2I1 1I1 "
                   "1SEND_B1 2W0 2W1 "
                   "1W0 1W1"});
  expect_like_pytorch(with_comms(compute), comms);
  EXPECT_EQ(print(comms, validate(comms, SendMode::Buffered)), "");
}

// Source: the same file, reduce_grad cases.
TEST(Passes, GradSyncIsPyTorchs) {
  const Schedule one = with_grad_sync(schedule_of({"0F0 0F1  0B0 0B1"}));
  EXPECT_EQ(row(one.programs[0]), "0F0 0F1 0B0 0B1 0REDUCE_GRAD");
  const Schedule two = with_grad_sync(schedule_of({"0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1"}));
  EXPECT_EQ(row(two.programs[0]), "0F0 0F1 1F0 1F1 1B0 1B1 1REDUCE_GRAD 0B0 0B1 0REDUCE_GRAD");
  EXPECT_EQ(with_grad_sync(two), two);
}

TEST(Passes, GradSyncWaitsForTheLastWeightPass) {
  const Schedule schedule = with_grad_sync(schedule_of({"0F0 0F1 0I0 0W0 0I1 0W1"}));
  EXPECT_EQ(row(schedule.programs[0]), "0F0 0F1 0I0 0W0 0I1 0W1 0REDUCE_GRAD");
}

TEST(Passes, TheGradientLeavesBeforeTheWeightPass) {
  const Schedule schedule = split_backward(one_f_one_b(2, 2));
  EXPECT_EQ(row(with_comms(schedule).programs[1]), "1RECV_F0 1F0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1I1 1SEND_B1 1W1");
}

TEST(Passes, AFusedPairStaysOne) {
  const Schedule pair = schedule_of({"0F0 (0F1;0B0)OVERLAP_F_B 0B1", "1F0 1B0 1F1 1B1"});
  EXPECT_EQ(row(with_comms(with_grad_sync(pair)).programs[0]),
            "0F0 0SEND_F0 0RECV_B0 (0F1;0B0)OVERLAP_F_B 0SEND_F1 0RECV_B1 0B1 0REDUCE_GRAD");
  EXPECT_EQ(row(with_comms(dual_pipe(2, 4)).programs[0]),
            "0F0 0SEND_F0 1RECV_F2 1F2 0F1 0SEND_F1 1B2 1SEND_B2 1RECV_F3 0RECV_B0 (1F3;0B0)OVERLAP_F_B 1B3 1SEND_B3 "
            "0RECV_B1 0I1 0W1");
}

TEST(Passes, BothCopiesOfAMirroredStageAreReduced) {
  const Schedule schedule = with_grad_sync(dual_pipe(2, 4));
  EXPECT_EQ(row(schedule.programs[0]), "0F0 1F2 0F1 1B2 (1F3;0B0)OVERLAP_F_B 1B3 1REDUCE_GRAD 0I1 0W1 0REDUCE_GRAD");
  EXPECT_EQ(row(schedule.programs[1]), "0F2 1F0 0F3 1B0 (1F1;0B2)OVERLAP_F_B 1B1 1REDUCE_GRAD 0I3 0W3 0REDUCE_GRAD");
}

TEST(Passes, AnAsynchronousScheduleNeedsNoGradSync) {
  const Schedule schedule = schedule_of({"0F0 0B0 0UPDATE0 0F1 0B1 0UPDATE1"});
  EXPECT_EQ(with_grad_sync(schedule), schedule);
}

// Source: PyTorch, test_schedule.py, TestScheduleLowering, unshard_reshard cases.
TEST(Passes, UnshardIsPyTorchs) {
  EXPECT_EQ(row(with_unshard(schedule_of({"0F0 0F1  0B0 0B1"})).programs[0]), "0UNSHARD 0F0 0F1 0B0 0B1 0RESHARD");
  const Schedule two = with_unshard(schedule_of({"0F0 0F1 1F0 1F1 1B0 1B1 0B0 0B1"}));
  EXPECT_EQ(row(two.programs[0]), "0UNSHARD 1UNSHARD 0F0 0F1 1F0 1F1 1B0 1B1 1RESHARD 0B0 0B1 0RESHARD");
  EXPECT_EQ(with_unshard(two), two);
}

TEST(Passes, UnshardHoldsTheNextStagesOnly) {
  const Schedule schedule = schedule_of({"0F0 1F0 2F0 2B0 1B0 0B0"});
  EXPECT_EQ(row(with_unshard(schedule, 2).programs[0]),
            "0UNSHARD 1UNSHARD 0F0 0RESHARD 2UNSHARD 1F0 2F0 2B0 2RESHARD 0UNSHARD 1B0 1RESHARD 0B0 0RESHARD");
  EXPECT_EQ(row(with_unshard(schedule, 1).programs[0]),
            "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1RESHARD 2UNSHARD 2F0 2B0 2RESHARD 1UNSHARD 1B0 1RESHARD 0UNSHARD 0B0 "
            "0RESHARD");
  // Both stages of a pair count, even when that is one more.
  EXPECT_EQ(row(with_unshard(schedule_of({"0F0 1F0 1B0 (0F1;0B0)OVERLAP_F_B 1F1 1B1 0B1"}), 1).programs[0]),
            "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 1B0 1RESHARD 0UNSHARD (0F1;0B0)OVERLAP_F_B 0RESHARD 1UNSHARD 1F1 1B1 "
            "1RESHARD 0UNSHARD 0B1 0RESHARD");
  EXPECT_EQ(row(with_unshard(schedule_of({"0F0 1F0 (0F1;1B0)OVERLAP_F_B 0B0 1F1 1B1 0B1"}), 1).programs[0]),
            "0UNSHARD 0F0 0RESHARD 1UNSHARD 1F0 0UNSHARD (0F1;1B0)OVERLAP_F_B 1RESHARD 0B0 0RESHARD 1UNSHARD 1F1 1B1 "
            "1RESHARD 0UNSHARD 0B1 0RESHARD");
}

TEST(Passes, RecomputeOverlapsTheReceive) {
  const Schedule schedule = with_recompute(with_comms(split_backward(one_f_one_b(2, 2))), {0, 1});
  EXPECT_EQ(row(schedule.programs[0]),
            "0F0 0SEND_F0 0F1 0SEND_F1 0RECOMPUTE0 0RECV_B0 0I0 0W0 0RECOMPUTE1 0RECV_B1 0I1 0W1");
  EXPECT_EQ(row(schedule.programs[1]),
            "1RECV_F0 1F0 1RECOMPUTE0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1RECOMPUTE1 1I1 1SEND_B1 1W1");
  const Schedule some = with_recompute(with_comms(dual_pipe(2, 4)), {0});
  EXPECT_EQ(row(some.programs[0]),
            "0F0 0SEND_F0 1RECV_F2 1F2 0F1 0SEND_F1 1B2 1SEND_B2 1RECV_F3 0RECOMPUTE0 0RECV_B0 "
            "(1F3;0B0)OVERLAP_F_B 1B3 1SEND_B3 0RECOMPUTE1 0RECV_B1 0I1 0W1");
  // A receive that was posted long before is no reason to recompute long before.
  EXPECT_EQ(row(with_recompute(schedule_of({"0F0 0F1 0RECV_B0 0RECV_B1 0B0 0B1", "1F0 1F1 1B0 1B1"}), {0}).programs[0]),
            "0F0 0F1 0RECOMPUTE0 0RECV_B0 0RECV_B1 0B0 0RECOMPUTE1 0B1");
}

TEST(Passes, ForwardsAloneGoDownThePipeInRounds) {
  const Schedule two = forward_only(one_f_one_b(2, 4), 2);
  EXPECT_EQ(row(two.programs[0]), "0F0 0SEND_F0 0F1 0SEND_F1");
  EXPECT_EQ(row(two.programs[1]), "1RECV_F0 1F0 1RECV_F1 1F1");
  // Chunks take turns, and the second direction of a mirrored schedule does not wait for the first.
  const Schedule loop = forward_only(make_schedule("interleaved", {.ranks = 2, .microbatches = 2, .chunks = 2}), 2);
  EXPECT_EQ(row(loop.programs[0]), "0F0 0SEND_F0 0F1 0SEND_F1 2RECV_F0 2F0 2SEND_F0 2RECV_F1 2F1 2SEND_F1");
  EXPECT_EQ(row(forward_only(dual_pipe(2, 4), 4).programs[0]), "0F0 0SEND_F0 0F1 0SEND_F1 1RECV_F2 1F2 1RECV_F3 1F3");
}

TEST(Passes, TogetherTheyStayValid) {
  for (const auto& named : valid_requests(5, 9)) {
    const Schedule schedule = named.schedule();
    for (const Schedule& whole :
         {with_comms(with_grad_sync(schedule)), with_comms(with_grad_sync(split_backward(schedule))),
          with_grad_sync(with_comms(schedule)), with_comms(with_grad_sync(with_unshard(schedule, 1))),
          with_recompute(with_comms(with_unshard(schedule)), {0, 1, schedule.num_stages - 1})}) {
      EXPECT_EQ(print(whole, validate(whole, SendMode::Buffered)), "") << named.text();
    }
  }
}

}  // namespace
}  // namespace braid::schedule::passes_test
