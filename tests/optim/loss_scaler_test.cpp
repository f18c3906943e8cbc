// The scale's path: down on overflow, up after a long run without, and never past its ends.
#include "braid/optim/loss_scaler.h"

#include <gtest/gtest.h>

#include "braid/base/errors.h"

namespace braid::optim::loss_scaler_test {
namespace {

TEST(LossScaler, StartsAtAPowerOfTwo) {
  EXPECT_EQ(LossScaler(65536).scale(), 65536);
  EXPECT_EQ(LossScaler(1000).scale(), 1024);
  EXPECT_EQ(LossScaler(1e30).scale(), LossScaler::kLargest);
}

TEST(LossScaler, HalvesOnOverflow) {
  LossScaler scaler(1024);
  scaler.update(Gradients::Overflowed);
  scaler.update(Gradients::Overflowed);
  scaler.update(Gradients::Finite);
  EXPECT_EQ(scaler.scale(), 256);
  EXPECT_EQ(scaler.state().num_finite, 1);
}

TEST(LossScaler, DoublesAfterARunOfFiniteSteps) {
  LossScaler scaler(1024);
  for (int step = 0; step < LossScaler::kGrowthInterval - 1; ++step) scaler.update(Gradients::Finite);
  EXPECT_EQ(scaler.scale(), 1024);
  scaler.update(Gradients::Finite);
  EXPECT_EQ(scaler.scale(), 2048);
}

TEST(LossScaler, AnOverflowBeginsTheRunAnew) {
  LossScaler scaler(1024);
  for (int step = 0; step < LossScaler::kGrowthInterval - 1; ++step) scaler.update(Gradients::Finite);
  scaler.update(Gradients::Overflowed);
  scaler.update(Gradients::Finite);
  EXPECT_EQ(scaler.scale(), 512);
}

TEST(LossScaler, DivergesAtTheSmallestScale) {
  LossScaler scaler(LossScaler::kSmallest);
  EXPECT_THROW(scaler.update(Gradients::Overflowed), RunError);
}

TEST(LossScaler, ContinuesFromItsState) {
  LossScaler one(1024), other(1);
  one.update(Gradients::Overflowed);
  other.set_state(one.state());
  EXPECT_EQ(other.scale(), 512);
}

}  // namespace
}  // namespace braid::optim::loss_scaler_test
