// Counts by hand: what is held while a pair is fused, while weight passes wait, and how many weights must be kept.
#include "braid/schedule/peaks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "braid/schedule/validate.h"

namespace braid::schedule::peaks_test {
namespace {

using Counts = std::vector<int>;

TEST(Peaks, WeightPassesHoldLongerThanActivations) {
  const Schedule schedule = from_csv("0F0,0I0,0F1,0I1,0W0,0F2,0B2,0W1", "late");
  EXPECT_EQ(peak_activations(schedule), Counts{1});
  EXPECT_EQ(peak_pending_weight_grads(schedule), Counts{2});
}

TEST(Peaks, APairHoldsBothOfItsMicrobatches) {
  EXPECT_EQ(peak_activations(from_csv("0F0,(0F1;0B0)OVERLAP_F_B,(0F2;0I1)OVERLAP_F_B,0B2,0W1", "fused")), Counts{2});
  EXPECT_EQ(peak_pending_weight_grads(from_csv("0F0,(0F1;0I0)OVERLAP_F_B,(0F2;0I1)OVERLAP_F_B,0W0,0B2,0W1", "fused")),
            Counts{3});
}

TEST(Peaks, EveryStageAndBothDirectionsCount) {
  const Schedule schedule = from_csv("0F0,1F1,1B1,0B0\n0F1,1F0,1B0,0B1\n", "mirrored");
  EXPECT_EQ(peak_activations(schedule), (Counts{2, 2}));
}

// PipeDream's steady state: rank r has p - r microbatches in flight, each on weights of its own.
Schedule pipedream(int ranks, int microbatches) {
  Schedule schedule = one_f_one_b(ranks, microbatches);
  schedule.promise = {};
  for (auto& program : schedule.programs) {
    Program longer;
    for (const Action& action : program) {
      longer.push_back(action);
      if (action.op == Op::FullBackward) longer.push_back({Op::Update, action.stage, action.micro});
    }
    program = std::move(longer);
  }
  return schedule;
}

TEST(Peaks, WeightVersionsOfPipeDreamAreItsPipelineDepth) {
  for (int p = 1; p <= 5; ++p) {
    const Schedule schedule = pipedream(p, 12);
    EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "");
    EXPECT_EQ(weight_versions(schedule), p);
    for (int rank = 0; rank < p; ++rank) {
      EXPECT_EQ(held_peak(schedule, rank, HeldResource::WeightVersions, 100).most, p - rank);
    }
    EXPECT_EQ(weight_versions(one_f_one_b(p, 12)), 1);
  }
}

TEST(Peaks, WeightVersionsByHand) {
  EXPECT_EQ(weight_versions(from_csv("0F0,0B0,0UPDATE0,0F1,0B1,0UPDATE1", "in turn")), 1);
  // A version is kept until the input gradient of its last reader; the weight pass needs it no more.
  EXPECT_EQ(weight_versions(from_csv("0F0,0F1,0B0,0UPDATE0,0I1,0W1,0UPDATE1", "one ahead")), 2);
  EXPECT_EQ(weight_versions(from_csv("0F0,0F1,0B0,0I1,0UPDATE0,0F2,0W1,0UPDATE1,0B2,0UPDATE2", "free")), 2);
  EXPECT_EQ(weight_versions(from_csv("0F0,0F1,0B0,0I1,0UPDATE0,0W1,0UPDATE1", "free")), 1);
  // Versions 0 and 2 have readers, 1 has none, and 3 is the newest.
  EXPECT_EQ(weight_versions(from_csv("0F0,0F1,0B1,0UPDATE1,0F2,0B2,0UPDATE2,0F3,0F4,0B4,0UPDATE4,0B3,0B0", "gap")), 3);
}

TEST(Peaks, TheFirstActionAboveALimitIsFound) {
  const Schedule schedule = from_csv("0F0,0F1,0B0,0F2,0F3,0B1,0B2,0B3", "four");
  EXPECT_EQ(held_peak(schedule, 0, HeldResource::Activations, 1).first_above, 1);
  EXPECT_EQ(held_peak(schedule, 0, HeldResource::Activations, 2).first_above, 4);
  EXPECT_EQ(held_peak(schedule, 0, HeldResource::Activations, 3).first_above, -1);
}

TEST(Peaks, TheValidatorHoldsASchedulesPromise) {
  Schedule schedule = from_csv("0F0,0F1,0I0,0F2,0F3,0I1,0W0,0B2,0W1,0B3", "four");
  schedule.promise.peak_activations = {3};
  schedule.promise.peak_pending_weight_grads = {4};
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "");
  schedule.promise.peak_activations = {2};
  schedule.promise.peak_pending_weight_grads = {2};
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)),
            "rank 0  0F0 0F1 0I0 >0F2< >0F3< 0I1 0W0 0B2 0W1 ..\n"
            "rank 0: 0F2: makes 3 pending weight gradients, the schedule promises 2\n"
            "rank 0: 0F3: makes 3 activations in flight, the schedule promises 2\n");
  schedule.promise = {.peak_activations = {9, 9}};
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "promises for 2 ranks, but there are 1\n");
}

TEST(Peaks, TheValidatorHoldsPromisedWeightVersions) {
  Schedule schedule = pipedream(3, 5);
  schedule.promise.weight_versions = 3;
  EXPECT_EQ(print(schedule, validate(schedule, SendMode::Buffered)), "");
  schedule.promise.weight_versions = 2;
  EXPECT_EQ(validate(schedule, SendMode::Buffered),
            (std::vector<Fault>{{0, 7, "0UPDATE1: makes 3 versions of its stage's weights, the schedule promises 2"}}));
}

}  // namespace
}  // namespace braid::schedule::peaks_test
