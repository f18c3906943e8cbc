// The passes against drawings and against cases published with PyTorch.
#include "braid/schedule/passes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/validate.h"
#include "tests/support/schedule_requests.h"

namespace braid {
namespace {

std::string row(const Program& program) {
  std::string words;
  for (const auto& action : program) {
    if (!words.empty()) words += ' ';
    words += text(action);
  }
  return words;
}

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

TEST(Passes, SplitBackward) {
  const Schedule schedule = split_backward(one_f_one_b(2, 2));
  EXPECT_EQ(row(schedule.programs[1]), "1F0 1I0 1W0 1F1 1I1 1W1");
  EXPECT_EQ(row(with_comms(schedule).programs[1]), "1RECV_F0 1F0 1I0 1SEND_B0 1W0 1RECV_F1 1F1 1I1 1SEND_B1 1W1");
}

TEST(Passes, TogetherTheyStayValid) {
  for (const auto& named : valid_requests(5, 9)) {
    const Schedule schedule = named.schedule();
    for (const Schedule& whole :
         {with_comms(with_grad_sync(schedule)), with_comms(with_grad_sync(split_backward(schedule))),
          with_grad_sync(with_comms(schedule))}) {
      EXPECT_EQ(print(whole, validate(whole, SendMode::Buffered)), "") << named.text();
    }
  }
}

}  // namespace
}  // namespace braid
