// Schedules of stages that need less than a whole backward, because parameters are frozen.
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/peaks.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/simulate.h"
#include "braid/schedule/validate.h"
#include "tests/support/dice.h"
#include "tests/support/schedule_requests.h"

namespace braid::schedule::backwards_test {
namespace {

using enum StageBackward;
using Backwards = std::vector<StageBackward>;

std::vector<std::string> rows_of(const Schedule& schedule) {
  std::vector<std::string> rows;
  for (const Program& program : schedule.programs) rows.push_back(text(program));
  return rows;
}

Schedule lowered(const Schedule& schedule) { return with_comms(with_grad_sync(schedule)); }

TEST(Backwards, Picture) {
  const Schedule schedule =
      with_backwards(make_schedule("1f1b", {.ranks = 3, .microbatches = 2}), {Nothing, Whole, InputOnly});
  EXPECT_EQ(rows_of(schedule), (std::vector<std::string>{"0F0 0F1", "1F0 1F1 1B0 1B1", "2F0 2I0 2F1 2I1"}));
  EXPECT_EQ(rows_of(lowered(schedule)),
            (std::vector<std::string>{"0F0 0SEND_F0 0F1 0SEND_F1",
                                      "1RECV_F0 1F0 1SEND_F0 1RECV_F1 1F1 1SEND_F1 1RECV_B0 1B0 1RECV_B1 1B1 "
                                      "1REDUCE_GRAD",
                                      "2RECV_F0 2F0 2I0 2SEND_B0 2RECV_F1 2F1 2I1 2SEND_B1"}));
}

TEST(Backwards, WeightPassesOfZeroBubbleAreLeftOut) {
  const Schedule schedule = with_backwards(make_schedule("zb-h1", {.ranks = 2, .microbatches = 2}), {Whole, InputOnly});
  EXPECT_NE(text(schedule.programs[0]).find('W'), std::string::npos);
  EXPECT_EQ(text(schedule.programs[1]).find('W'), std::string::npos);
}

TEST(Backwards, WholeOnesChangeNothing) {
  const Schedule schedule = make_schedule("1f1b", {.ranks = 2, .microbatches = 3});
  EXPECT_EQ(with_backwards(schedule, {}), schedule);
  EXPECT_EQ(with_backwards(schedule, {Whole, Whole}), schedule);
}

// Leading stages without a backward, and any others without weight gradients; at least one is whole.
Backwards drawn(int num_stages, Dice& dice) {
  const int first = dice.between(0, num_stages - 1);
  Backwards backwards(num_stages, Nothing);
  for (int stage = first; stage < num_stages; ++stage) {
    backwards[stage] = stage == first || dice.between(0, 1) == 1 ? Whole : InputOnly;
  }
  return backwards;
}

TEST(Backwards, EveryScheduleRunsWithoutThePasses) {
  Dice dice(3);
  for (const NamedRequest& request : valid_requests(4, 6)) {
    const Schedule whole = request.schedule();
    const Schedule shorter = with_backwards(whole, drawn(whole.num_stages, dice));
    const Schedule lowered_one = lowered(shorter);
    EXPECT_EQ(print(lowered_one, validate(lowered_one, SendMode::Buffered)), print(lowered_one, {})) << request.text();
    EXPECT_EQ(with_backwards(lowered(whole), shorter.backwards), lowered_one) << request.text();
    CostModel cost;
    cost.stages.assign(whole.num_stages, {1, 1, 1});
    EXPECT_LE(simulate(shorter, cost).busiest(), simulate(whole, cost).busiest() + 1e-9) << request.text();
    for (int rank = 0; rank < whole.num_ranks(); ++rank) {
      EXPECT_LE(held_peak(shorter, rank, HeldResource::Activations, 1 << 20).most,
                held_peak(whole, rank, HeldResource::Activations, 1 << 20).most);
    }
  }
}

std::string faults_of(const Schedule& schedule) { return print(schedule, validate(schedule, SendMode::Buffered)); }

TEST(Backwards, PassesThatNothingNeedsAreFaults) {
  Schedule schedule = from_csv("0F0,0I0,0W0\n1F0,1B0\n", "test");
  EXPECT_EQ(faults_of(schedule), "");
  schedule.backwards = {InputOnly, Whole};
  EXPECT_NE(faults_of(schedule).find("0W0: computes a gradient that nothing needs"), std::string::npos);
  schedule.backwards = {Nothing, Whole};
  EXPECT_NE(faults_of(schedule).find("0I0: computes a gradient that nothing needs"), std::string::npos);
  Schedule sent = from_csv("0F0,0SEND_F0,0RECV_B0\n1RECV_F0,1F0,1B0,1SEND_B0\n", "test");
  sent.backwards = {Nothing, Whole};
  EXPECT_NE(faults_of(sent).find("1SEND_B0: nothing needs this gradient"), std::string::npos);
}

}  // namespace
}  // namespace braid::schedule::backwards_test
