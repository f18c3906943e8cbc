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

// The first number's gradient is known to a thousandth, the second's to nothing.
TEST(UpdateSlack, IsTheMoveOfNumbersWhoseGradientIsRounding) {
  Recording recording;
  const std::string name = "wte.weight";
  recording.start[name] = {at::tensor({0.0, 0.0}, at::kDouble), 0};
  recording.steps.resize(1);
  RecordedStep& step = recording.steps[0];
  step.gradients[name] = {at::tensor({1.0, 1e-9}, at::kDouble), 1};
  step.masters[name] = step.weights[name] = {at::tensor({0.5, -0.5}, at::kDouble), 0.5};
  Differences rounded;
  rounded.add({1, Phase::Gradients, param(name), 0}, 1 + 0.25e-3, 1);
  set_update_slack(recording, {rounded, subjects(), DType::Float64});
  const at::Tensor slack = step.masters[name].slack;
  EXPECT_NEAR(slack[0].item<double>(), 1e-3, 1e-8);
  EXPECT_EQ(slack[1].item<double>(), 1);
  EXPECT_TRUE(slack.equal(step.weights[name].slack));
}

TEST(Differences, SlackExplainsItsOwnNumbersAlone) {
  const Place place{1, Phase::Update, param("wte.weight"), 0};
  const at::Tensor want = at::full({2}, 1.0, at::kDouble), slack = at::tensor({0.5, 0.0}, at::kDouble);
  Differences differences;
  differences.add(place, at::tensor({1.5, 1.0}, at::kDouble), {want, slack, 1});
  EXPECT_EQ(differences.at(place).excess, 0);
  EXPECT_EQ(differences.at(place).largest, 0.5);
  differences.add(place, at::tensor({1.0, 1.25}, at::kDouble), {want, slack, 1});
  EXPECT_EQ(differences.at(place).excess, 0.25);
}

}  // namespace
}  // namespace braid::verify::verdict_test
