// How far ranks run ahead: pictures, and what holds for every schedule.
#include "braid/schedule/run_ahead.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "braid/schedule/passes.h"
#include "tests/support/schedule_requests.h"

namespace braid::run_ahead_test {
namespace {

Schedule lowered(const Schedule& schedule) { return with_comms(with_grad_sync(schedule)); }

std::string words(const Program& program, size_t end) {
  std::string words;
  for (size_t i = 0; i < end; ++i) words += (i > 0 ? " " : "") + text(program[i]);
  return words;
}

std::string beginning(const Schedule& schedule, int rank) {
  return words(schedule.programs[rank], run_ahead(schedule).until[rank]);
}

std::string unreceived(const Schedule& schedule, int rank) {
  const Program program = run_ahead(schedule).unreceived[rank];
  return words(program, program.size());
}

TEST(RunAhead, OfOneFOneB) {
  const Schedule schedule = lowered(make_schedule("1f1b", {3, 6}));
  EXPECT_EQ(beginning(schedule, 0), "0F0 0SEND_F0 0F1 0SEND_F1 0F2 0SEND_F2");
  EXPECT_EQ(beginning(schedule, 1), "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1");
  EXPECT_EQ(beginning(schedule, 2), "2RECV_F0");
  EXPECT_EQ(unreceived(schedule, 0), "");
  EXPECT_EQ(unreceived(schedule, 1), "1RECV_F2");
  EXPECT_EQ(unreceived(schedule, 2), "2RECV_F1");
}

// Both ends of the V are on rank 0: the way back ends at its first forward of the last stage.
TEST(RunAhead, OfAV) {
  const Schedule schedule = lowered(make_schedule("zb-v", {2, 4}));
  const std::string first = beginning(schedule, 0);
  EXPECT_EQ(first.find("3F"), std::string::npos) << first;
  EXPECT_NE(first.find("3RECV_F0"), std::string::npos) << first;
  EXPECT_NE(beginning(schedule, 1).find("2F0 2SEND_F0"), std::string::npos) << beginning(schedule, 1);
}

TEST(RunAhead, OneRankStaysWhereItIs) {
  EXPECT_EQ(beginning(lowered(make_schedule("1f1b", {1, 4})), 0), "");
  EXPECT_EQ(beginning(lowered(make_schedule("interleaved", {1, 4})), 0), "0F0");
}

TEST(RunAhead, AReceiveWhoseSendIsNotReachedIsNotReached) {
  Schedule schedule = lowered(make_schedule("gpipe", {3, 2}));
  Program& middle = schedule.programs[1];  // its weights of something else are reduced first
  middle.insert(middle.begin(), {Op::ReduceGrad, 1, -1});
  EXPECT_EQ(beginning(schedule, 0), "0F0 0SEND_F0 0F1 0SEND_F1");
  EXPECT_EQ(beginning(schedule, 1), "");
  EXPECT_EQ(beginning(schedule, 2), "");
  EXPECT_EQ(unreceived(schedule, 1), "1RECV_F0 1RECV_F1");
  EXPECT_EQ(unreceived(schedule, 2), "");
}

bool sends(Op op) { return op == Op::SendForward || op == Op::SendBackward; }
bool receives(Op op) { return op == Op::RecvForward || op == Op::RecvBackward; }

Action send_of(const Action& receive) {
  if (receive.op == Op::RecvForward) return {Op::SendForward, receive.stage - 1, receive.micro};
  return {Op::SendBackward, receive.stage + 1, receive.micro};
}

bool writes(const Action& action, const Schedule& schedule) {
  if (action.op == Op::Forward) return action.stage == schedule.num_stages - 1;
  return !communicates(action.op);
}

void expect_consistent(const Schedule& schedule) {
  const RunAhead ahead = run_ahead(schedule);
  std::set<Action> sent, taken;
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const Program& program = schedule.programs[rank];
    for (int i = 0; i < ahead.until[rank]; ++i) {
      EXPECT_FALSE(writes(program[i], schedule)) << text(program[i]);
      if (sends(program[i].op)) sent.insert(program[i]);
      if (receives(program[i].op)) taken.insert(send_of(program[i]));
    }
    for (const Action& receive : ahead.unreceived[rank]) EXPECT_TRUE(taken.insert(send_of(receive)).second);
  }
  EXPECT_EQ(sent, taken);  // each message of the beginnings once: received, or to be dropped
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    const Program& program = schedule.programs[rank];
    const size_t next = ahead.until[rank];
    ASSERT_LT(next, program.size());
    const bool writes_next = writes(program[next], schedule) || pair_begins(program, next);
    EXPECT_TRUE(writes_next || (receives(program[next].op) && !sent.contains(send_of(program[next]))))
        << "rank " << rank << " could go on with " << text(program[next]);
  }
}

TEST(RunAhead, EveryMessageIsReceivedOrDroppedAndNoRankCouldGoFurther) {
  for (const NamedRequest& named : valid_requests(5, 10)) {
    SCOPED_TRACE(named.text());
    expect_consistent(lowered(named.schedule()));
  }
}

}  // namespace
}  // namespace braid::run_ahead_test
