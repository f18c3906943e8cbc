// The walk: fused pairs wait for both of their actions and are visited together; the order of visits respects waits.
#include "braid/schedule/walk.h"

#include <gtest/gtest.h>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule::walk_test {
namespace {

struct Walked {
  std::vector<Visit> visits;
  std::vector<int> stops;
};

Walked walked(const Schedule& schedule, SendMode mode = SendMode::Buffered) {
  Walked result;
  result.stops = walk(schedule, mode, [&](const Visit& visit) { result.visits.push_back(visit); });
  return result;
}

// 1F1B with the steady state fused: rank 0 runs F1 with B0, rank 1 has nothing to fuse.
const char kFused[] =
    "0F0,(0F1;0B0)OVERLAP_F_B,0B1\n"
    "1F0,1B0,1F1,1B1\n";

TEST(Walk, APairRunsWhenBothMay) {
  const Walked fused = walked(from_csv(kFused, "fused"));
  EXPECT_EQ(fused.stops, (std::vector<int>{4, 4}));
  std::vector<std::string> order;
  for (const Visit& visit : fused.visits) {
    order.push_back(braid::text(from_csv(kFused, "fused").programs[visit.rank][visit.index]));
  }
  // 0F1 alone could run at once; with 0B0 it waits for 1B0, and both come in one piece.
  EXPECT_EQ(order, (std::vector<std::string>{"0F0", "1F0", "1B0", "0F1", "0B0", "1F1", "1B1", "0B1"}));
}

TEST(Walk, APairThatNeedsItsOwnEffectNeverRuns) {
  // 0B0 needs 1B0, which needs 1F0, which rank 1 runs after 1F1, and that needs 0F1.
  const Schedule schedule = from_csv("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F1,1F0,1B0,1B1\n", "stuck");
  EXPECT_EQ(walked(schedule).stops, (std::vector<int>{1, 0}));
  EXPECT_EQ(walked(from_csv("0F0,0F1,0B0,0B1\n1F1,1F0,1B0,1B1\n", "apart")).stops, (std::vector<int>{4, 4}));
}

TEST(Walk, UnitTimeGivesAPairOneSlot) {
  const Timeline timeline = unit_time(from_csv(kFused, "fused"));
  const auto& first = timeline.ranks[0];
  EXPECT_EQ(first[1].begin, 3);
  EXPECT_EQ(first[1].end, 4);
  EXPECT_EQ(first[2].begin, 3);
  EXPECT_EQ(first[2].end, 4);
  EXPECT_EQ(timeline.ranks[1][2].begin, 4);  // 1F1 follows the pair's end
  EXPECT_EQ(timeline.busy(0), 3);
  EXPECT_EQ(timeline.makespan(), 7);
}

TEST(Walk, BothDirectionsOfAMirroredScheduleRun) {
  const Schedule schedule = from_csv(
      "0F0,1F1,1B1,0B0\n"
      "0F1,1F0,1B0,0B1\n",
      "bidirectional");
  ASSERT_TRUE(schedule.mirrored());
  const Walked both = walked(schedule);
  EXPECT_EQ(both.stops, (std::vector<int>{4, 4}));
  for (const Visit& visit : both.visits) {
    if (visit.index == 1 || visit.index == 3) {
      EXPECT_EQ(visit.after_rank, 1 - visit.rank);
    }
  }
}

// Every visit comes after what it waits for and after the one before it on its rank; under rendezvous a send waits for
// the receive that follows it.
void expect_order(const Schedule& schedule, SendMode mode) {
  SCOPED_TRACE(schedule.name);
  const Walked all = walked(schedule, mode);
  std::vector<int> seen(schedule.num_ranks(), 0);  // of each rank
  for (const Visit& visit : all.visits) {
    EXPECT_EQ(visit.index, seen[visit.rank]);
    const Op op = schedule.programs[visit.rank][visit.index].op;
    const bool meets = mode == SendMode::Rendezvous && (op == Op::SendForward || op == Op::SendBackward);
    if (visit.after_rank >= 0) {
      EXPECT_LT(visit.after_index, seen[visit.after_rank] + (meets ? 1 : 0));
    }
    ++seen[visit.rank];
  }
  EXPECT_EQ(all.stops, seen);
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    EXPECT_EQ(seen[rank], static_cast<int>(schedule.programs[rank].size()));
  }
}

TEST(Walk, TheOrderRespectsEveryWait) {
  for (const auto& name : schedule_names()) {
    const Schedule schedule = make_schedule(name, {.ranks = 4, .microbatches = 8});
    expect_order(schedule, SendMode::Buffered);
    expect_order(with_comms(schedule), SendMode::Buffered);
  }
}

TEST(Walk, ManyRanksGoOnInBlocks) {
  for (const char* name : {"1f1b", "interleaved", "zb-v", "dualpipe"}) {
    const Schedule schedule = make_schedule(name, {.ranks = 300, .microbatches = 600});
    expect_order(schedule, SendMode::Buffered);
  }
  for (const SendMode mode : {SendMode::Buffered, SendMode::Rendezvous}) {
    expect_order(with_comms(make_schedule("gpipe", {.ranks = 300, .microbatches = 40})), mode);
  }
}

TEST(Walk, RanksWaitForStagesThatOthersOwn) {
  const Schedule schedule{.name = "astray",
                          .num_stages = 2,
                          .num_microbatches = 1,
                          .stage_rank = {1, 1},
                          .programs = {{{Op::Forward, 1, 0}}, {{Op::Forward, 0, 0}}}};
  EXPECT_EQ(walked(schedule).stops, (std::vector<int>{1, 1}));
}

TEST(Walk, RepeatedTransfersMeet) {
  const Action send{Op::SendForward, 0, 0};
  const Action receive{Op::RecvForward, 1, 0};
  const Schedule schedule{.name = "repeated",
                          .num_stages = 2,
                          .num_microbatches = 1,
                          .stage_rank = {0, 1},
                          .programs = {{{Op::Forward, 0, 0}, send, send}, {receive, {Op::Forward, 1, 0}, receive}}};
  EXPECT_EQ(walked(schedule, SendMode::Rendezvous).stops, (std::vector<int>{3, 3}));
}

}  // namespace
}  // namespace braid::schedule::walk_test
