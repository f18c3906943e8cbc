// The schedule against its closed forms.
#include "braid/optim/lr_schedule.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "braid/base/errors.h"
#include "braid/optim/grad_norm.h"

namespace braid::optim::lr_schedule_test {
namespace {

std::vector<double> rates(const OptimizerSpec& spec, int num_steps) {
  std::vector<double> out;
  for (int step = 0; step < num_steps; ++step) out.push_back(learning_rate(spec, step, num_steps));
  return out;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-15) << "step " << i;
}

TEST(LearningRate, Linear) {
  const OptimizerSpec spec{.lr = 1, .schedule = RateSchedule::Linear, .warmup_steps = 4, .final_lr_fraction = 0.2};
  expect_near(rates(spec, 9), {0.25, 0.5, 0.75, 1, 1, 0.8, 0.6, 0.4, 0.2});
}

TEST(LearningRate, Cosine) {
  const OptimizerSpec spec{.lr = 2, .schedule = RateSchedule::Cosine, .warmup_steps = 2, .final_lr_fraction = 0.1};
  const double s = std::sqrt(0.5);  // cos(pi / 4)
  expect_near(rates(spec, 7), {1, 2, 2, 2 * (0.1 + 0.45 * (1 + s)), 2 * 0.55, 2 * (0.1 + 0.45 * (1 - s)), 0.2});
}

TEST(LearningRate, Constant) {
  const OptimizerSpec spec{.lr = 3, .schedule = RateSchedule::Constant, .warmup_steps = 3};
  expect_near(rates(spec, 5), {1, 2, 3, 3, 3});
}

TEST(LearningRate, StaysAndFallsAtTheEnd) {
  OptimizerSpec spec{
      .lr = 2, .schedule = RateSchedule::Wsd, .warmup_steps = 2, .cooldown_steps = 4, .final_lr_fraction = 0.2};
  expect_near(rates(spec, 9), {1, 2, 2, 2, 2, 1.6, 1.2, 0.8, 0.4});
  spec.decay_steps = 7;
  expect_near(rates(spec, 9), {1, 2, 2, 1.6, 1.2, 0.8, 0.4, 0.4, 0.4});
  spec.decay_steps = 4;  // the warm-up leaves two
  expect_near(rates(spec, 5), {1, 2, 1.2, 0.4, 0.4});
  spec.decay_steps = 2;
  expect_near(rates(spec, 3), {1, 2, 0.4});
  spec.cooldown_steps = 0, spec.decay_steps = std::numeric_limits<int>::max();
  EXPECT_EQ(rates(spec, 4), (std::vector<double>{1, 2, 2, 2}));
  spec.decay_steps = 0;  // a tenth
  expect_near(rates(spec, 11), {1, 2, 2, 2, 2, 2, 2, 2, 2, 1.2, 0.4});
}

TEST(LearningRate, FallsWithTheRootOfTheSteps) {
  const OptimizerSpec spec{.lr = 2, .schedule = RateSchedule::InverseSqrt, .warmup_steps = 4, .decay_steps = 8};
  expect_near(rates(spec, 6), {0.5, 1, 1.5, 2, 2 * std::sqrt(0.8), 2 * std::sqrt(4.0 / 6)});
  EXPECT_EQ(learning_rate(spec, 15, 100), 1) << "it has no end";
  EXPECT_EQ(learning_rate({.lr = 3, .schedule = RateSchedule::InverseSqrt}, 8, 10), 1);
}

TEST(LearningRate, ShortRuns) {
  const OptimizerSpec linear{.lr = 1, .schedule = RateSchedule::Linear, .warmup_steps = 4, .final_lr_fraction = 0.5};
  expect_near(rates(linear, 3), {0.25, 0.5, 0.75});
  expect_near(rates(linear, 5), {0.25, 0.5, 0.75, 1, 0.5});
  const OptimizerSpec cosine{.lr = 1, .final_lr_fraction = 0.5};
  expect_near(rates(cosine, 1), {0.5});
  expect_near(rates(cosine, 2), {1, 0.5});
}

TEST(LearningRate, HasAHorizonOfItsOwnAndStaysAtItsMinimumBeyond) {
  const OptimizerSpec linear{
      .lr = 1, .schedule = RateSchedule::Linear, .warmup_steps = 4, .decay_steps = 9, .final_lr_fraction = 0.2};
  expect_near(rates(linear, 12), {0.25, 0.5, 0.75, 1, 1, 0.8, 0.6, 0.4, 0.2, 0.2, 0.2, 0.2});
  expect_near(rates(linear, 6), {0.25, 0.5, 0.75, 1, 1, 0.8});
  for (const auto schedule : {RateSchedule::Cosine, RateSchedule::Linear}) {
    OptimizerSpec spec{.lr = 3, .schedule = schedule, .warmup_steps = 5, .final_lr_fraction = 0.1};
    std::vector<double> want = rates(spec, 40);
    spec.decay_steps = 40;
    EXPECT_EQ(rates(spec, 40), want) << "the same bits";
    want.resize(60, want.back());
    EXPECT_EQ(rates(spec, 60), want);
  }
  const OptimizerSpec none{.lr = 1, .warmup_steps = 2, .decay_steps = 2, .final_lr_fraction = 0.5};
  expect_near(rates(none, 4), {0.5, 1, 0.5, 0.5});
}

TEST(LearningRate, StepsOutsideTheRunFail) {
  EXPECT_THROW(learning_rate({}, 5, 5), InternalError);
  EXPECT_THROW(learning_rate({}, -1, 5), InternalError);
}

TEST(ClipScale, IsTheOneOfPyTorch) {
  EXPECT_EQ(clip_scale(0.5, 1), 1);
  EXPECT_DOUBLE_EQ(clip_scale(4, 1), 1 / (4 + 1e-6));
  EXPECT_EQ(clip_scale(4, 0), 1);
  EXPECT_EQ(clip_scale(0, 1), 1);
}

}  // namespace
}  // namespace braid::optim::lr_schedule_test
