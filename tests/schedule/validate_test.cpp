// Every kind of fault is found, named and marked; sound schedules have none.
#include "braid/schedule/validate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "tests/support/split_backward.h"

namespace braid::schedule::validate_test {
namespace {

using Texts = std::vector<std::string>;

Texts texts(const Schedule& schedule, SendMode mode = SendMode::Buffered) {
  Texts result;
  for (const auto& fault : validate(schedule, mode)) result.push_back(fault.text);
  return result;
}

int position(const Schedule& schedule, const char* word) {
  const Action action = parse_action(word);
  const Program& program = schedule.programs.at(schedule.rank_of(action.stage, std::max(0, action.micro)));
  return static_cast<int>(std::find(program.begin(), program.end(), action) - program.begin());
}

Schedule without(Schedule schedule, const char* word) {
  const Action action = parse_action(word);
  std::erase(schedule.programs[schedule.rank_of(action.stage, 0)], action);
  return schedule;
}

Schedule swapped(Schedule schedule, const char* a, const char* b) {
  Program& program = schedule.programs[schedule.rank_of(parse_action(a).stage, 0)];
  std::swap(program[position(schedule, a)], program[position(schedule, b)]);
  return schedule;
}

TEST(Validate, BufferedOneFOneBIsSoundAndInOrderRendezvousDeadlocks) {
  for (int p : {2, 3, 4}) {
    for (int m : {2, 4, 8}) {
      const Schedule schedule = with_comms(one_f_one_b(p, m));
      EXPECT_EQ(texts(schedule), Texts{}) << p << " " << m;
      EXPECT_EQ(validate(schedule, SendMode::Rendezvous).size(), static_cast<size_t>(p)) << p << " " << m;
    }
  }
  // With one microbatch nothing crosses, and gpipe's transfers never do.
  EXPECT_EQ(texts(with_comms(one_f_one_b(4, 1)), SendMode::Rendezvous), Texts{});
  EXPECT_EQ(texts(with_comms(gpipe(4, 8)), SendMode::Rendezvous), Texts{});
}

TEST(Validate, RendezvousMeetsOneReceiveAndNoOther) {
  // Rank 1 takes microbatch 1 first: a buffer holds 0 for it, a rendezvous never happens.
  const Schedule schedule = with_comms(swapped(gpipe(2, 2), "1F0", "1F1"));
  EXPECT_EQ(texts(schedule), Texts{});
  EXPECT_EQ(texts(schedule, SendMode::Rendezvous),
            (Texts{"0SEND_F0: never runs, it waits for 1RECV_F0 of rank 1, which stops at 1RECV_F1",
                   "1RECV_F1: never runs, it waits for 0SEND_F1 of rank 0, which stops at 0SEND_F0"}));
}

TEST(Validate, DeadlockNamesTheCycle) {
  const Schedule schedule = with_comms(one_f_one_b(2, 2));
  const std::vector<Fault> faults = validate(schedule, SendMode::Rendezvous);
  EXPECT_EQ(print(schedule, faults),
            "rank 0  0F0 0SEND_F0 0F1 >0SEND_F1< 0RECV_B0 0B0 0RECV_B1 0B1\n"
            "rank 1  1RECV_F0 1F0 1B0 >1SEND_B0< 1RECV_F1 1F1 1B1 1SEND_B1\n"
            "rank 0: 0SEND_F1: never runs, it waits for 1RECV_F1 of rank 1, which stops at 1SEND_B0\n"
            "rank 1: 1SEND_B0: never runs, it waits for 0RECV_B0 of rank 0, which stops at 0SEND_F1\n");
}

TEST(Validate, MissingActions) {
  const Schedule schedule = one_f_one_b(2, 2);
  EXPECT_EQ(validate(without(schedule, "0F1"), SendMode::Buffered),
            (std::vector<Fault>{{0, 2, "0B1: never runs, it waits for 0F1, which is not there"},
                                {0, -1, "0F1: missing"},
                                {1, 2, "1F1: never runs, it waits for 0F1 of rank 0, which is not there"}}));
  EXPECT_EQ(texts(without(schedule, "0B1")), Texts{"0B1: missing"});
  EXPECT_EQ(texts(without(split_backward(schedule), "1W0")),
            (Texts{"1F1: makes 2 pending weight gradients, the schedule promises 1", "1W0: missing"}));
}

TEST(Validate, DuplicatesMixturesAndStrangers) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.programs[0].push_back({Op::FullBackward, 0, 1});
  schedule.programs[1].push_back({Op::InputGrad, 1, 0});
  schedule.programs[1].push_back({Op::Forward, 0, 0});
  schedule.programs[1].push_back({Op::Forward, 5, 0});
  schedule.programs[1].push_back({Op::Forward, 1, 7});
  EXPECT_EQ(texts(schedule),
            (Texts{"0B1: appears a second time", "1B0: is also split in I and W", "0F0: its stage is on rank 0",
                   "5F0: there is no stage 5", "1F7: there is no microbatch 7"}));
}

TEST(Validate, OwnersMustExist) {
  Schedule schedule = one_f_one_b(2, 2);
  schedule.stage_rank = {0, 2};
  EXPECT_EQ(texts(schedule), Texts{"stage 1 is owned by rank 2, which does not exist"});
  schedule.stage_rank = {0};
  EXPECT_EQ(texts(schedule), Texts{"2 stages, but 1 have an owner"});
}

TEST(Validate, OrderWithinARank) {
  EXPECT_EQ(texts(swapped(one_f_one_b(1, 2), "0F1", "0B1")), Texts{"0B1: comes before 0F1"});
  EXPECT_EQ(texts(swapped(split_backward(gpipe(1, 1)), "0I0", "0W0")), Texts{"0W0: comes before 0I0"});
}

TEST(Validate, OrderAcrossRanks) {
  // Rank 1 wants microbatch 1 first, rank 0 wants the backward of 0 before it sends 1.
  Schedule schedule = gpipe(2, 2);
  schedule.programs[0] = {{Op::Forward, 0, 0}, {Op::FullBackward, 0, 0}, {Op::Forward, 0, 1}, {Op::FullBackward, 0, 1}};
  schedule.programs[1] = {{Op::Forward, 1, 1}, {Op::Forward, 1, 0}, {Op::FullBackward, 1, 0}, {Op::FullBackward, 1, 1}};
  EXPECT_EQ(texts(schedule), (Texts{"0B0: never runs, it waits for 1B0 of rank 1, which stops at 1F1",
                                    "1F1: never runs, it waits for 0F1 of rank 0, which stops at 0B0"}));
}

TEST(Validate, OrderOfStagesOnOneRank) {
  EXPECT_EQ(texts(swapped(from_csv("0F0,1F0,1B0,0B0", "chunks"), "0F0", "1F0")),
            Texts{"1F0: never runs, it waits for 0F0, which comes later"});
}

TEST(Validate, TransfersMatch) {
  const Schedule schedule = with_comms(gpipe(2, 1));
  EXPECT_EQ(texts(without(schedule, "0SEND_F0")),
            (Texts{"0RECV_B0: never runs, it waits for 1SEND_B0 of rank 1, which stops at 1RECV_F0",
                   "0SEND_F0: missing", "1RECV_F0: never runs, it waits for 0SEND_F0 of rank 0, which is not there"}));
  EXPECT_EQ(texts(without(schedule, "0RECV_B0")),
            (Texts{"0B0: never runs, it waits for 0RECV_B0, which is not there", "0RECV_B0: missing"}));
  EXPECT_EQ(texts(swapped(schedule, "1B0", "1SEND_B0"))[1], "1SEND_B0: comes before 1B0");
  EXPECT_EQ(texts(swapped(schedule, "1RECV_F0", "1F0"))[1], "1F0: comes before 1RECV_F0");
  Schedule stranger = schedule;
  stranger.programs[0].push_back({Op::RecvForward, 0, 0});
  EXPECT_EQ(texts(stranger), Texts{"0RECV_F0: there is no stage on another rank at its other end"});
}

TEST(Validate, GradSyncFollowsAllWeightWork) {
  const Schedule schedule = with_grad_sync(gpipe(2, 2));
  EXPECT_EQ(texts(schedule), Texts{});
  EXPECT_EQ(texts(swapped(schedule, "1B1", "1REDUCE_GRAD")), Texts{"1REDUCE_GRAD: comes before 1B1"});
  EXPECT_EQ(texts(without(schedule, "0REDUCE_GRAD")), Texts{"0REDUCE_GRAD: missing"});
}

TEST(Validate, LongProgramsShowTheNeighbourhood) {
  const Schedule schedule = swapped(one_f_one_b(1, 9), "0F5", "0B5");
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)),
            "rank 0  .. 0F3 0B3 0F4 0B4 >0B5< 0F5 0F6 0B6 0F7 ..\n"
            "rank 0: 0B5: comes before 0F5\n");
}

// Removing, doubling or moving any single action of a sound schedule is noticed, or leaves it sound.
TEST(Validate, EveryRemovalAndEveryDoublingIsNoticed) {
  for (const Schedule& schedule : {with_comms(with_grad_sync(one_f_one_b(3, 4))), split_backward(gpipe(2, 3))}) {
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      for (size_t i = 0; i < schedule.programs[rank].size(); ++i) {
        Schedule less = schedule;
        less.programs[rank].erase(less.programs[rank].begin() + i);
        EXPECT_FALSE(validate(less, SendMode::Buffered).empty()) << braid::text(schedule.programs[rank][i]);
        Schedule more = schedule;
        more.programs[rank].push_back(schedule.programs[rank][i]);
        EXPECT_FALSE(validate(more, SendMode::Buffered).empty()) << braid::text(schedule.programs[rank][i]);
      }
    }
  }
}

}  // namespace
}  // namespace braid::schedule::validate_test
