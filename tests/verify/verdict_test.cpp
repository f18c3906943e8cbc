// Bounds follow from the second serial run, and the first divergence from the order of steps, phases and ops.
#include "braid/verify/verdict.h"

#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <limits>

#include "braid/verify/rounding.h"
#include "braid/verify/update_slack.h"
#include "tests/verify/small_run.h"

namespace braid::verify::verdict_test {
namespace {

struct Compared {
  Place place;
  double difference = 0;
};

Differences of(const std::vector<Compared>& all) {
  Differences differences;
  for (const auto& [place, difference] : all) differences.add(place, 1 + difference, 1);
  return differences;
}

const Subjects& subjects() {
  static const Subjects kSubjects(small_run());
  return kSubjects;
}

int param(const std::string& name) { return subjects().of_param(name); }
int output(int block, int op) {
  return subjects().of_value({nn::ValueKind::Output, block, subjects().graph().block(block).ops[op].out});
}

Verdict verdict_on(const std::vector<Compared>& layout, const std::vector<Compared>& rounded = {}) {
  const Differences serial = of(rounded);
  return judged(of(layout), {serial, subjects(), DType::Float64});
}

TEST(Verdict, ADifferenceIsExplainedByThatOfTheSerialRuns) {
  const Place place{1, Phase::Forward, output(1, 0), 0};
  EXPECT_TRUE(verdict_on({{place, 1e-3}}).first_divergence);
  EXPECT_TRUE(verdict_on({{place, 1e-3}}, {{place, 1e-4}}).first_divergence);
  EXPECT_FALSE(verdict_on({{place, 1e-3}}, {{place, 5e-4}}).first_divergence);
  const Place of_rank{1, Phase::Forward, output(1, 0), 3};
  EXPECT_FALSE(verdict_on({{of_rank, 1e-3}}, {{place, 5e-4}}).first_divergence);
  const Place again{1, Phase::Recompute, output(1, 0), 0};
  EXPECT_FALSE(verdict_on({{again, 1e-3}}, {{place, 5e-4}}).first_divergence);
}

TEST(Verdict, OneRoundingOfTheTypeIsExplained) {
  const Place place{1, Phase::Forward, output(1, 0), 0};
  const double rounding = rounding_of(DType::Float64, subjects()[place.subject].longest_sum);
  EXPECT_FALSE(verdict_on({{place, 2 * rounding}}).first_divergence);
  EXPECT_TRUE(verdict_on({{place, 8 * rounding}}).first_divergence);
}

TEST(Verdict, RoundingGrowsWithTheTypeAndTheSum) {
  EXPECT_LT(rounding_of(DType::Float64, 100), rounding_of(DType::Float32, 1));
  EXPECT_LT(rounding_of(DType::Float32, 100), rounding_of(DType::Float16, 1));
  EXPECT_LT(rounding_of(DType::Float16, 1), rounding_of(DType::BFloat16, 1));
  EXPECT_EQ(rounding_of(DType::Float32, 100), 10 * rounding_of(DType::Float32, 1));
}

TEST(Verdict, InputsMayNotDiffer) {
  const Place place{1, Phase::Data, Subjects::kTokens, 0};
  EXPECT_TRUE(verdict_on({{place, 1e-15}}, {{place, 1}}).first_divergence);
}

TEST(Verdict, NumbersThatAreNotFiniteDiffer) {
  const Place place{1, Phase::Forward, subjects().loss(), 0};
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    EXPECT_TRUE(verdict_on({{place, bad}}, {{place, 1}}).first_divergence);
  }
}

TEST(Verdict, TheFirstStepThenPhaseThenOpIsNamed) {
  const int early = output(1, 0), late = output(2, 0);
  const auto first = [](std::vector<Compared> layout) {
    const auto found = verdict_on(layout).first_divergence.value();
    return cat(found.step, " ", word(found.phase), " ", found.op);
  };
  std::vector<Compared> layout{{{2, Phase::Start, param("wte.weight"), 0}, 1},
                               {{1, Phase::Update, param("wte.weight"), 0}, 1}};
  EXPECT_EQ(first(layout), "1 update embedding lookup wte");
  layout.push_back({{1, Phase::Backward, early, 0}, 1});
  EXPECT_EQ(first(layout), "1 backward blocks.0 linear attention.qkv");
  layout.push_back({{1, Phase::Backward, late, 0}, 1});
  EXPECT_EQ(first(layout), "1 backward blocks.1 linear attention.qkv");
  layout.push_back({{1, Phase::Forward, late, 0}, 1});
  EXPECT_EQ(first(layout), "1 forward blocks.1 layer norm ln_1");
  layout.push_back({{1, Phase::Forward, early, 0}, 1});
  EXPECT_EQ(first(layout), "1 forward blocks.0 layer norm ln_1");
}

TEST(Verdict, AllRanksThatDifferAreNamed) {
  const int value = output(1, 0);
  const auto found = verdict_on({{{1, Phase::Forward, value, 3}, 1},
                                 {{1, Phase::Forward, value, 0}, 0},
                                 {{1, Phase::Forward, value, 1}, 1},
                                 {{1, Phase::Forward, value + 1, 2}, 1}});
  EXPECT_EQ(found.first_divergence.value().ranks, (std::vector<int>{1, 3}));
}

TEST(Verdict, AParameterThatNoRankHoldsIsMissing) {
  const Place wte{1, Phase::Gradients, param("wte.weight"), 0}, wpe{1, Phase::Gradients, param("wpe.weight"), 0};
  EXPECT_FALSE(verdict_on({{wte}, {wpe}}, {{wte}, {wpe}}).first_divergence);
  const auto missing = verdict_on({{wte}}, {{wte}, {wpe}}).first_divergence.value();
  EXPECT_EQ(missing.tensor, "wpe.weight");
  EXPECT_TRUE(missing.ranks.empty());
}

TEST(Verdict, RowsJoinTheLayers) {
  const Verdict verdict = verdict_on({{{1, Phase::Gradients, param("blocks.0.ln_1.weight"), 0}, 1e-17},
                                      {{2, Phase::Gradients, param("blocks.1.ln_1.weight"), 0}, 1e-3}});
  ASSERT_EQ(verdict.rows.size(), 1u);
  EXPECT_EQ(verdict.rows[0].tensor, "blocks.*.ln_1.weight");
  EXPECT_NEAR(verdict.rows[0].relative, 1e-3, 1e-9);
  EXPECT_FALSE(verdict.rows[0].equal);
}

// Returns the slack of two numbers after a step of each of these gradients, which move them by 0.5 and -0.5 and are
// known to a thousandth. The weights begin at 2.
at::Tensor slack_after(const std::vector<at::Tensor>& gradients, const OptimizerSpec& spec) {
  Recording recording;
  const std::string name = "wte.weight";
  at::Tensor weight = at::full({2}, 2.0, at::kDouble);
  recording.start[name] = {weight, 2};
  recording.decays[name] = model::WeightDecay::Yes;
  Differences rounded;
  for (const at::Tensor& gradient : gradients) {
    RecordedStep& step = recording.steps.emplace_back();
    step.learning_rate = 0.5;
    step.gradients[name] = {gradient, 1};
    weight = weight.add(at::tensor({0.5, -0.5}, at::kDouble));
    step.masters[name] = step.weights[name] = {weight, scale_of(weight)};
    rounded.add({std::ssize(recording.steps), Phase::Gradients, param(name), 0}, 1 + 0.25e-3, 1);
  }
  set_update_slack(recording, {rounded, subjects(), DType::Float64}, spec);
  const RecordedStep& last = recording.steps.back();
  EXPECT_TRUE(last.masters.at(name).slack.equal(last.weights.at(name).slack));
  return last.masters.at(name).slack;
}

void expect_slack(const at::Tensor& slack, double first, double second) {
  EXPECT_NEAR(slack[0].item<double>(), first, 1e-6);
  EXPECT_NEAR(slack[1].item<double>(), second, 1e-6);
}

at::Tensor numbers(double first, double second) { return at::tensor({first, second}, at::kDouble); }

// The first number's gradient is known to a thousandth, the second's to nothing.
TEST(UpdateSlack, IsTheMoveOfNumbersWhoseGradientIsRounding) {
  expect_slack(slack_after({numbers(1, 1e-9)}, {.kind = OptimizerKind::AdamW, .clip_norm = 0}), 1e-3, 1);
}

// A decay of 0.5 x 2 is added to the gradients: the second number has a direction of 0.01, known to a tenth.
TEST(UpdateSlack, DividesByTheGradientWithTheDecayUnderAdagrad) {
  expect_slack(slack_after({numbers(1, -0.99)}, {.kind = OptimizerKind::Adagrad, .weight_decay = 0.5, .clip_norm = 0}),
               0.5e-3, 0.1);
}

// Momenta after the first step: 0.5. Directions of the second: 0.25 + 0.5 g, known to 0.75e-3.
TEST(UpdateSlack, DividesByTheDirectionOfBothMomentaUnderLion) {
  const OptimizerSpec lion{.kind = OptimizerKind::Lion, .beta1 = 0.5, .beta2 = 0.5, .clip_norm = 0};
  expect_slack(slack_after({numbers(1, 1), numbers(1, -0.49)}, lion), 1e-3 + 1e-3, 1e-3 + 0.15);
}

// The learning rate is 0.5. Errors of the momentum: 1e-3 and 0.5 x 1e-3 + 1e-3.
TEST(UpdateSlack, IsProportionalToTheErrorUnderSgd) {
  const OptimizerSpec sgd{.kind = OptimizerKind::Sgd, .momentum = 0.5, .weight_decay = 0, .clip_norm = 0};
  expect_slack(slack_after({numbers(1, 1e-9), numbers(1, -0.49)}, sgd), 1.25e-3, 1.25e-3);
}

TEST(Verdict, TheNormMayDifferByTheNormOfTheGradientsDifferences) {
  const Place norm{2, Phase::Norm, subjects().norm(), 0}, wte{2, Phase::Gradients, param("wte.weight"), 0},
      wpe{2, Phase::Gradients, param("wpe.weight"), 0};
  EXPECT_FALSE(verdict_on({{norm, 1.9e-3}}, {{norm, 1e-9}, {wte, 3e-4}, {wpe, 4e-4}}).first_divergence);
  EXPECT_TRUE(verdict_on({{norm, 2.1e-3}}, {{norm, 1e-3}, {wte, 3e-4}, {wpe, 4e-4}}).first_divergence);
}

// The first number differs by more, but its slack explains that.
TEST(Verdict, TheNumberThatDiffersIsPrinted) {
  const Place place{1, Phase::Update, param("wte.weight"), 0};
  Differences layout, rounded;
  layout.add(place, numbers(1.5, 1.25), {numbers(1, 1), numbers(0.5, 0.125), 1});
  const Verdict verdict = judged(layout, {rounded, subjects(), DType::Float64});
  ASSERT_TRUE(verdict.first_divergence);
  EXPECT_EQ(verdict.first_divergence->relative, 0.25);
  EXPECT_NEAR(verdict.first_divergence->bound, 0.125, 1e-12);
  EXPECT_EQ(verdict.rows[0].relative, 0.25);
  EXPECT_EQ(verdict.rows[0].bound, verdict.first_divergence->bound);
}

TEST(Differences, SlackExplainsItsOwnNumbersAlone) {
  const Place place{1, Phase::Update, param("wte.weight"), 0};
  const at::Tensor want = at::full({2}, 1.0, at::kDouble), slack = at::tensor({0.5, 0.0}, at::kDouble);
  Differences differences;
  differences.add(place, at::tensor({1.5, 1.0}, at::kDouble), {want, slack, 1});
  EXPECT_EQ(differences.at(place).worst.excess(), 0);
  EXPECT_EQ(differences.at(place).largest.difference, 0.5);
  differences.add(place, at::tensor({1.0, 1.25}, at::kDouble), {want, slack, 1});
  EXPECT_EQ(differences.at(place).worst.excess(), 0.25);
}

}  // namespace
}  // namespace braid::verify::verdict_test
