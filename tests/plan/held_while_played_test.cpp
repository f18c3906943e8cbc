// The memory of a rank while its program runs in order: copies of what moves to a tier, and tensors from other ranks.
#include <gtest/gtest.h>

#include "braid/plan/pipeline_outcome.h"

namespace braid::plan::held_while_played_test {
namespace {

// A pipeline of one stage for each rank, whose backwards take as long as forwards.
PipelineQuestion question(const char* schedule, int ranks, int microbatches, const HeldBytes& held) {
  PipelineQuestion asked;
  asked.schedule = schedule;
  asked.request.ranks = ranks;
  asked.request.microbatches = microbatches;
  asked.stages.assign(static_cast<size_t>(ranks), {.forward = 1, .input_grad = 1, .weight_grad = 1});
  asked.held.assign(static_cast<size_t>(ranks), held);
  return asked;
}

PipelineOutcome played(const PipelineQuestion& asked) { return pipeline_outcome(asked, PipelineDetail::Played); }

// GPipe runs forward after forward, 1F1B on one rank a backward between them.
TEST(HeldWhilePlayed, AForwardFindsTheCopiesOfTheForwardBeforeIt) {
  const HeldBytes held{.copies_left = 10, .beside_copies = 3};
  EXPECT_EQ(played(question("gpipe", 2, 2, held)).held_bytes, (std::vector<double>{13, 13}));
  EXPECT_EQ(played(question("1f1b", 1, 2, held)).held_bytes, std::vector<double>{3});
}

TEST(HeldWhilePlayed, AForwardHasItsOwnWorkingMemory) {
  const HeldBytes held{.activation = 10, .working = 5, .forward_working = 1};
  EXPECT_EQ(played(question("gpipe", 1, 3, held)).held_bytes, std::vector<double>{35});
  const HeldBytes wide{.activation = 10, .working = 1, .forward_working = 5};
  EXPECT_EQ(played(question("gpipe", 1, 3, wide)).held_bytes, std::vector<double>{35});
}

// With 1F1B the last rank runs each backward right after its forward.
TEST(HeldWhilePlayed, ABackwardThatFollowsItsForwardFindsTheLastBlock) {
  const HeldBytes held{.last_moved = 10};
  EXPECT_EQ(played(question("1f1b", 2, 4, held)).found_bytes, (std::vector<double>{0, 40}));
  EXPECT_EQ(played(question("gpipe", 2, 4, held)).found_bytes, (std::vector<double>{0, 0}));
}

// Receives are posted four actions ahead: when rank 1 runs 1F0, 1RECV_F1 and 1RECV_F2 are among them in GPipe, and only
// 1RECV_F1 in 1F1B, where 1F0 1B0 1SEND_B0 1RECV_F1 follow.
TEST(HeldWhilePlayed, TensorsAreReceivedAhead) {
  PipelineQuestion asked = question("gpipe", 2, 3, {.activation = 10});
  asked.received_bytes = 1;
  EXPECT_EQ(played(asked).received_bytes[1], 1);  // 1F2, when 30 are held, has its own input
  asked.schedule = "1f1b";
  EXPECT_EQ(played(asked).received_bytes[1], 2);  // 1F0 has its own input and the next one
}

}  // namespace
}  // namespace braid::plan::held_while_played_test
