// Rules about fused pairs, mirrored stages, whole-stage ops, recompute and update; each kind of fault at its cell.
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/base/text.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/passes.h"
#include "braid/schedule/program_text.h"
#include "braid/schedule/validate.h"

namespace braid::schedule::validate_rules_test {
namespace {

std::string faults_of(const Schedule& schedule, SendMode mode = SendMode::Buffered) {
  return print(schedule, validate(schedule, mode));
}

// Rows of words, as read from a table.
std::string faults_of(const char* table) { return faults_of(from_csv(table, "test")); }

TEST(ValidateRules, FusedPairsAreSound) {
  EXPECT_EQ(faults_of("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,1B0,1F1,1B1\n"), "");
  EXPECT_EQ(faults_of("0F0,(0F1;0I0)OVERLAP_F_B,0W0,0B1"), "");
  const char comms[] =
      "0F0,0SEND_F0,0RECV_B0,(0F1;0B0)OVERLAP_F_B,0SEND_F1,0RECV_B1,0B1\n"
      "1RECV_F0,1F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1\n";
  EXPECT_EQ(faults_of(comms), "");
  EXPECT_EQ(faults_of(from_csv(comms, "comms"), SendMode::Rendezvous), "");
}

TEST(ValidateRules, AStuckPairIsOneCellAndNamesWhatIsMissing) {
  EXPECT_EQ(faults_of("0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F1,1F0,1B0,1B1\n"),
            "rank 0  0F0 >(0F1;0B0)OVERLAP_F_B< 0B1\n"
            "rank 1  >1F1< 1F0 1B0 1B1\n"
            "rank 0: (0F1;0B0)OVERLAP_F_B: never runs, it waits for 1B0 of rank 1, which stops at 1F1\n"
            "rank 1: 1F1: never runs, it waits for 0F1 of rank 0, which waits as well\n");
  EXPECT_EQ(faults_of("0F0,0B0,0F1,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n"),
            "rank 0  0F0 >0B0< 0F1 0B1\n"
            "rank 1  1F0 >(1F1;1B0)OVERLAP_F_B< 1B1\n"
            "rank 0: 0B0: never runs, it waits for 1B0 of rank 1, which stops at (1F1;1B0)OVERLAP_F_B\n"
            "rank 1: (1F1;1B0)OVERLAP_F_B: never runs, it waits for 0F1 of rank 0, which stops at 0B0\n");
}

TEST(ValidateRules, ThePositionOfThePairsSecondMarksItsCellToo) {
  // 0B0 appears a second time, inside a pair.
  EXPECT_EQ(faults_of("0F0,0B0,(0F1;0B0)OVERLAP_F_B,0B1"),
            "rank 0  0F0 0B0 >(0F1;0B0)OVERLAP_F_B< 0B1\n"
            "rank 0: 0B0: appears a second time\n");
}

TEST(ValidateRules, OnlyAForwardAndABackwardOfTwoMicrobatchesFuse) {
  Schedule schedule = from_csv("0F0,0F1,0B0,0B1", "test");
  Program& program = schedule.programs[0];
  program[0].fusion = Fusion::WithNext;
  EXPECT_EQ(faults_of(schedule),
            "rank 0  >0F0< 0F1 0B0 0B1\n"
            "rank 0: 0F0: is marked as fused, but it is no F with a B or an I after it\n");
  program[0].fusion = Fusion::None;
  program[3].fusion = Fusion::WithNext;
  EXPECT_EQ(validate(schedule, SendMode::Buffered).at(0).position, 3);
  program[3].fusion = Fusion::None;
  program[1].fusion = Fusion::WithNext;
  EXPECT_EQ(faults_of(schedule), "");
  std::swap(program[2], program[3]);
  EXPECT_EQ(faults_of(schedule),
            "rank 0  0F0 >(0F1;0B1)OVERLAP_F_B< 0B0\n"
            "rank 0: (0F1;0B1)OVERLAP_F_B: fuses two passes of one microbatch\n");
}

// Both stages on both ranks; microbatch 0 goes from rank 0 to 1, microbatch 1 from rank 1 to 0.
const char kMirrored[] =
    "0F0,1F1,1B1,0B0,1REDUCE_GRAD,0REDUCE_GRAD\n"
    "0F1,1F0,1B0,0B1,1REDUCE_GRAD,0REDUCE_GRAD\n";

TEST(ValidateRules, EveryCopyOfAMirroredStageReduces) {
  const Schedule schedule = from_csv(kMirrored, "mirrored");
  EXPECT_EQ(faults_of(schedule), "");
  EXPECT_EQ(faults_of(with_comms(schedule)), "");
  for (int rank = 0; rank < 2; ++rank) {
    Schedule less = schedule;
    less.programs[rank].pop_back();
    EXPECT_EQ(faults_of(less), rank == 0 ? "rank 0: 0REDUCE_GRAD: missing\n" : "rank 1: 0REDUCE_GRAD: missing\n");
    Schedule early = schedule;
    std::swap(early.programs[rank][2], early.programs[rank][4]);
    const std::vector<Fault> faults = validate(early, SendMode::Buffered);
    ASSERT_GE(faults.size(), 1u);
    EXPECT_EQ(faults[0].rank, rank);
    EXPECT_EQ(faults[0].position, 2);
    EXPECT_EQ(faults[0].text, rank == 0 ? "1REDUCE_GRAD: comes before 1B1" : "1REDUCE_GRAD: comes before 1B0");
  }
}

TEST(ValidateRules, AMirroredMicrobatchOnTheWrongRankIsNamed) {
  Schedule schedule = from_csv(kMirrored, "mirrored");
  schedule.programs[0][0].micro = 1;
  const std::vector<Fault> faults = validate(schedule, SendMode::Buffered);
  EXPECT_EQ(faults[0], (Fault{0, 0, "0F1: its stage is on rank 1"}));
  schedule = from_csv(kMirrored, "mirrored");
  schedule.mirror_rank = {1, 7};
  EXPECT_EQ(faults_of(schedule), "stage 1 is owned by rank 7 in the second direction, which does not exist\n");
  schedule.mirror_rank = {1, 0};
  schedule.mirror_from = 3;
  EXPECT_EQ(faults_of(schedule), "the second direction begins at microbatch 3, which does not exist\n");
}

// A fault on a mutated schedule must be among those found, at the mutated cell.
void expect_fault(const Schedule& schedule, const Fault& expected) {
  const std::vector<Fault> faults = validate(schedule, SendMode::Buffered);
  EXPECT_NE(std::find(faults.begin(), faults.end(), expected), faults.end())
      << schedule.name << ": " << expected.text << "\n"
      << print(schedule, faults);
}

TEST(ValidateRules, EveryMutationOfEveryScheduleIsFoundAtItsCell) {
  for (const auto& name : schedule_names()) {
    const Schedule made = make_schedule(name, {.ranks = 2, .microbatches = 6});
    for (const Schedule& schedule : {made, with_comms(with_grad_sync(made))}) {
      ASSERT_EQ(faults_of(schedule), "") << name;
      for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
        const int size = static_cast<int>(schedule.programs[rank].size());
        for (int i = 0; i < size; ++i) {
          Action action = schedule.programs[rank][i];
          Schedule less = schedule;
          less.programs[rank].erase(less.programs[rank].begin() + i);
          expect_fault(less, {rank, -1, braid::text(action) + ": missing"});
          action.fusion = Fusion::None;
          Schedule more = schedule;
          more.programs[rank].push_back(action);
          expect_fault(more, {rank, size, braid::text(action) + ": appears a second time"});
          if (schedule.mirrored() && of_whole_stage(action.op)) continue;  // both ranks have it
          Schedule stray = schedule;
          stray.programs[1 - rank].insert(stray.programs[1 - rank].begin(), action);
          expect_fault(stray, {1 - rank, 0, cat(braid::text(action), ": its stage is on rank ", rank)});
          Schedule beyond = schedule;
          beyond.programs[rank][i].stage = schedule.num_stages;
          const std::string word = braid::text(beyond.programs[rank][i]);
          expect_fault(beyond, {rank, i, cat(word, ": there is no stage ", schedule.num_stages)});
        }
      }
    }
  }
}

// If two neighbours depend on each other, the later one may not come first.
TEST(ValidateRules, EverySwapOfAPassAndItsTransferIsFoundAtItsCell) {
  for (const auto& name : schedule_names()) {
    const Schedule schedule = with_comms(make_schedule(name, {.ranks = 2, .microbatches = 6}));
    int swapped = 0;
    for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
      const Program& program = schedule.programs[rank];
      for (size_t i = 0; i + 1 < program.size(); ++i) {
        const auto [a, b] = std::pair(program[i], program[i + 1]);
        const bool depend = a.stage == b.stage && a.micro == b.micro;
        if (!depend || a.fusion != Fusion::None || b.fusion != Fusion::None || pair_ends(program, i)) continue;
        Schedule wrong = schedule;
        std::swap(wrong.programs[rank][i], wrong.programs[rank][i + 1]);
        if (b.op == Op::WeightGrad && a.op != Op::InputGrad) continue;
        if (a.op == Op::SendForward || a.op == Op::SendBackward) continue;  // a send holds back nothing on its rank
        expect_fault(wrong, {rank, static_cast<int>(i), cat(braid::text(b), ": comes before ", braid::text(a))});
        ++swapped;
      }
    }
    EXPECT_GT(swapped, 6) << name;
  }
}

TEST(ValidateRules, RecomputeStandsBetweenForwardAndBackward) {
  EXPECT_EQ(faults_of("0F0,0RECOMPUTE0,0B0"), "");
  EXPECT_EQ(faults_of("0F0,0F1,0RECOMPUTE1,0I1,0W1,0B0"), "");
  EXPECT_EQ(faults_of("0F0,0B0,0RECOMPUTE0"),
            "rank 0  0F0 >0B0< 0RECOMPUTE0\n"
            "rank 0: 0B0: comes before 0RECOMPUTE0\n");
  EXPECT_EQ(faults_of("0RECOMPUTE0,0F0,0B0"),
            "rank 0  >0RECOMPUTE0< 0F0 0B0\n"
            "rank 0: 0RECOMPUTE0: comes before 0F0\n");
  EXPECT_EQ(faults_of("0F0,0RECOMPUTE0,0RECOMPUTE0,0B0"),
            "rank 0  0F0 0RECOMPUTE0 >0RECOMPUTE0< 0B0\n"
            "rank 0: 0RECOMPUTE0: appears a second time\n");
}

TEST(ValidateRules, UpdatesFollowTheGradientsTheyInclude) {
  EXPECT_EQ(faults_of("0F0,0B0,0UPDATE0,0F1,0B1,0UPDATE1"), "");
  EXPECT_EQ(faults_of("0F0,0I0,0F1,0W0,0B1,0UPDATE1"), "");  // one for both
  EXPECT_EQ(faults_of("0F0,0I0,0UPDATE0,0W0"),
            "rank 0  0F0 0I0 >0UPDATE0< 0W0\n"
            "rank 0: 0UPDATE0: comes before 0W0\n");
  EXPECT_EQ(faults_of("0F0,0F1,0B1,0UPDATE1,0B0,0UPDATE0"),
            "rank 0  0F0 0F1 0B1 >0UPDATE1< 0B0 0UPDATE0\n"
            "rank 0: 0UPDATE1: comes before 0B0\n");
  EXPECT_EQ(faults_of("0F0,0B0,0UPDATE0,0F1,0B1"), "rank 0: 0UPDATE1: missing\n");
  EXPECT_EQ(faults_of("0F0,0B0,0UPDATE0,0F1,0B1,0UPDATE1\n1F0,1B0,1F1,1B1,1UPDATE1\n"), "rank 1: 1UPDATE0: missing\n");
  EXPECT_EQ(faults_of("0F0,0B0,0UPDATE0,0UPDATE0"),
            "rank 0  0F0 0B0 0UPDATE0 >0UPDATE0<\n"
            "rank 0: 0UPDATE0: appears a second time\n");
}

TEST(ValidateRules, PassesRunWhileTheirStageIsUnsharded) {
  EXPECT_EQ(faults_of("0UNSHARD,0F0,0RESHARD,0UNSHARD,0B0,0RESHARD"), "");
  EXPECT_EQ(faults_of("0UNSHARD,0F0,0RESHARD,0B0"),
            "rank 0  0UNSHARD 0F0 0RESHARD >0B0<\n"
            "rank 0: 0B0: its stage is not unsharded\n");
  EXPECT_EQ(faults_of("0UNSHARD,0F0,0UNSHARD,0B0,0RESHARD,0RESHARD"),
            "rank 0  0UNSHARD 0F0 >0UNSHARD< 0B0 0RESHARD >0RESHARD<\n"
            "rank 0: 0UNSHARD: its stage is unsharded already\n"
            "rank 0: 0RESHARD: its stage is not unsharded\n");
  // Each stage for itself, and of a mirrored stage each copy.
  EXPECT_EQ(faults_of("0UNSHARD,0F0,1UNSHARD,1F0,0RESHARD,1B0,1RESHARD,0UNSHARD,0B0"), "");
  EXPECT_EQ(faults_of("0UNSHARD,0F0,0B0\n0F1,0B1\n"),
            "rank 1  >0F1< >0B1<\n"
            "rank 1: 0F1: its stage is not unsharded\n"
            "rank 1: 0B1: its stage is not unsharded\n");
}

}  // namespace
}  // namespace braid::schedule::validate_rules_test
