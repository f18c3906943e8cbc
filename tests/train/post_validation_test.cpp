// Updating before the norm is known trains, bit for bit, what waiting for it trains: with the update taken back at
// every step, at some, at none; under every synchronous schedule.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/optim/grad_norm.h"
#include "braid/schedule/generators.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::post_validation_test {
namespace {

constexpr int kMicrobatches = 8;

RunSpec spec_for(const std::string& schedule, const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(6, kMicrobatches * mesh.data);
  spec.mesh = mesh;
  spec.pipeline.schedule = schedule;
  spec.train.steps = 4;
  return spec;
}

RunSpec validated_after(RunSpec spec) {
  spec.pipeline.validation = "after";
  return spec;
}

struct History {
  std::vector<StepReport> reports;             // rank 0's
  std::vector<std::vector<double>> own_norms;  // of each step: what each rank of the first replica speaks for
  std::map<std::string, at::Tensor> params;    // global masters after the last step

  std::vector<int> rollbacks() const {
    std::vector<int> all;
    for (const StepReport& report : reports) all.push_back(report.rollbacks);
    return all;
  }
};

double own_norm(Trainer& trainer, double loss_scale) {
  double sum = 0;
  for (const Parameter& param : trainer.model().params().params()) {
    if (trainer.model().counts(param)) sum += param.main_grad.to(at::kDouble).square().sum().item<double>();
  }
  return std::sqrt(sum) / loss_scale;
}

History trained(const RunSpec& spec) {
  History history;
  history.own_norms.resize(spec.train.steps);
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    std::vector<StepReport> reports;
    const auto hear = [&](const std::optional<StepReport>& report) {
      if (report) reports.push_back(*report);
    };
    for (int step = 0; step < spec.train.steps; ++step) {
      hear(trainer.advance());
      EXPECT_EQ(trainer.num_steps(), step + 1);
      EXPECT_EQ(reports.size(), static_cast<size_t>(spec.pipeline.validation == "after" ? step : step + 1));
      if (spec.pipeline.validation == "after" || trainer.groups().at[Axis::Data] > 0) continue;
      const std::scoped_lock hold(lock);
      history.own_norms[step].push_back(own_norm(trainer, reports.back().loss_scale));
    }
    hear(trainer.settle());
    EXPECT_FALSE(trainer.settle());
    const std::scoped_lock hold(lock);
    collect(trainer, history.params, Held::Masters);
    if (trainer.groups().world.rank() == 0) history.reports = reports;
  });
  return history;
}

// A rank that can tell by its own part waits; the others update, and take it back where the whole asks for something
// else than the whole update.
std::vector<int> expected_rollbacks(const History& waited, double clip_norm) {
  std::vector<int> expected;
  for (size_t step = 0; step < waited.reports.size(); ++step) {
    const StepReport& report = waited.reports[step];
    const bool as_guessed = !report.skipped && clip_scale(report.grad_norm, clip_norm) == 1;
    int count = 0;
    for (const double own : waited.own_norms[step]) {
      count += !as_guessed && std::isfinite(own) && clip_scale(own, clip_norm) == 1;
    }
    expected.push_back(count);
  }
  return expected;
}

// Steps of a run.
struct Counted {
  int taken_back = 0, clipped = 0;
};

Counted expect_the_same(const RunSpec& spec) {
  const History waited = trained(spec), guessed = trained(validated_after(spec));
  EXPECT_EQ(guessed.reports.size(), waited.reports.size());
  for (size_t step = 0; step < waited.reports.size(); ++step) {
    const StepReport &want = waited.reports[step], &got = guessed.reports.at(step);
    EXPECT_EQ(got.step, want.step);
    EXPECT_EQ(got.loss, want.loss) << "step " << want.step;
    EXPECT_TRUE(got.grad_norm == want.grad_norm || !std::isfinite(want.grad_norm)) << "step " << want.step;
    EXPECT_EQ(got.skipped, want.skipped);
    EXPECT_EQ(got.loss_scale, want.loss_scale);
    EXPECT_EQ(got.learning_rate, want.learning_rate);
    EXPECT_EQ(got.sample_hash, want.sample_hash);
    EXPECT_EQ(want.rollbacks, 0);
  }
  EXPECT_TRUE(same_bits(guessed.params, waited.params));
  const std::vector<int> rollbacks = guessed.rollbacks();
  EXPECT_EQ(rollbacks, expected_rollbacks(waited, spec.optimizer.clip_norm));
  Counted counted;
  for (const StepReport& report : guessed.reports) {
    counted.taken_back += report.rollbacks > 0;
    counted.clipped += clip_scale(report.grad_norm, spec.optimizer.clip_norm) < 1;
  }
  return counted;
}

// The norms without clipping, to clip between them.
std::vector<double> norms(RunSpec spec) {
  spec.optimizer.clip_norm = 0;
  std::vector<double> all;
  for (const StepReport& report : trained(spec).reports) all.push_back(report.grad_norm);
  return all;
}

std::vector<ScheduleOnMesh> layouts() {
  std::vector<ScheduleOnMesh> candidates, all;
  for (const ScheduleTraits& traits : schedule_traits()) {
    if (!traits.asynchronous()) candidates.push_back({std::string(traits.name), {.pipe = 2}});
  }
  for (const char* name : {"1f1b", "zb-h2", "zb-v"}) candidates.push_back({name, {.pipe = 4}});
  for (const char* name : {"1f1b", "zb-v", "dualpipe"}) candidates.push_back({name, {.pipe = 2, .data = 2}});
  candidates.push_back({"zb-h1", {.pipe = 2, .tensor = 2}});
  for (const ScheduleOnMesh& layout : candidates) {
    if (schedule_problems(layout.schedule, {layout.mesh.pipe, kMicrobatches}).empty()) all.push_back(layout);
  }
  return all;
}

class PostValidation : public testing::TestWithParam<ScheduleOnMesh> {};

TEST_P(PostValidation, TrainsTheSameBitsHoweverOftenItIsTakenBack) {
  RunSpec spec = spec_for(GetParam().schedule, GetParam().mesh);
  const std::vector<double> all = norms(spec);
  spec.optimizer.clip_norm = 0;
  EXPECT_EQ(expect_the_same(spec).taken_back, 0);
  spec.optimizer.clip_norm = 0.97 * all[0];  // less than the whole, more than some part: a guess is wrong
  EXPECT_GT(expect_the_same(spec).taken_back, 0);
  spec.optimizer.clip_norm =
      (*std::min_element(all.begin(), all.end()) + *std::max_element(all.begin(), all.end())) / 2;
  const int clipped = expect_the_same(spec).clipped;
  EXPECT_GT(clipped, 0);
  EXPECT_LT(clipped, spec.train.steps);
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, PostValidation, testing::ValuesIn(layouts()),
                         [](const auto& info) { return cat(info.param); });

TEST(PostValidationAtOnce, ARankThatCanTellByItsPartDoesNotGuess) {
  RunSpec spec = spec_for("zb-h1", {.pipe = 2});
  spec.optimizer.clip_norm = 1e-3;
  const Counted counted = expect_the_same(spec);
  EXPECT_EQ(counted.taken_back, 0);
  EXPECT_EQ(counted.clipped, spec.train.steps);
}

TEST(PostValidationAtOnce, OnePipelineRankHasNothingToRunAheadOf) {
  RunSpec spec = validated_after(spec_for("1f1b", {.data = 2}));
  on_every_rank(spec, [](Trainer& trainer) {
    EXPECT_TRUE(trainer.advance());
    EXPECT_FALSE(trainer.settle());
  });
}

// With a scale that halves step by step there comes one where the gradients of some stages overflow and those of others
// do not: ranks of these guess wrong.
TEST(PostValidationOfFloat16, AnOverflowIsSkippedAndTheScaleFollows) {
  RunSpec spec = spec_for("zb-h2", {.pipe = 4});
  spec.train.dtype = DType::Float16;
  spec.train.loss_scale = 16777216;
  spec.train.steps = 14;
  spec.optimizer.clip_norm = 0;
  const Counted counted = expect_the_same(spec);
  EXPECT_GT(counted.taken_back, 0);
  const auto reports = trained(validated_after(spec)).reports;
  EXPECT_TRUE(reports.front().skipped);
  EXPECT_FALSE(reports.back().skipped);
}

// Step 1 moves every weight by about 1e200.
TEST(PostValidationOfDivergence, NamesTheStepAndLeavesTheWeightsBeforeIt) {
  for (const char* validation : {"before", "after"}) {
    for (const bool at_the_end : {false, true}) {
      RunSpec spec = spec_for("zb-h2", {.pipe = 2});
      spec.pipeline.validation = validation;
      spec.optimizer.lr = 1e200;
      on_every_rank(spec, [&](Trainer& trainer) {
        trainer.advance();
        trainer.settle();
        const at::Tensor good = trainer.model().params().flat_master().detach().clone();
        try {
          trainer.advance();
          if (at_the_end) trainer.settle();
          trainer.advance();
          ADD_FAILURE() << "a loss that is not finite ends the training";
        } catch (const RunError& error) {
          EXPECT_EQ(std::string(error.what()).find("step 2: "), 0) << error.what();
        }
        EXPECT_EQ(trainer.num_steps(), 1);
        EXPECT_TRUE(good.equal(trainer.model().params().flat_master()));
        EXPECT_FALSE(trainer.settle());
      });
    }
  }
}

class PostValidationResume : public ScratchFolder {};

TEST_F(PostValidationResume, GoesOnFromWhatWasSavedInTheMiddle) {
  RunSpec spec = spec_for("zb-v", {.pipe = 2});
  spec.optimizer.clip_norm = 0.97 * norms(spec).front();
  const History want = trained(spec);
  spec = validated_after(spec);
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.advance();
    trainer.advance();
    trainer.save(path("saved"), "");  // with the second step still open
    EXPECT_EQ(trainer.settle().value().step, 2);
    EXPECT_GT(trainer.evaluate(), 0);
  });
  std::map<std::string, at::Tensor> params;
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.load(path("saved"));
    EXPECT_FALSE(trainer.advance());
    EXPECT_EQ(trainer.advance().value().step, 3);
    EXPECT_EQ(trainer.settle().value().loss, want.reports[3].loss);
    const std::scoped_lock hold(lock);
    collect(trainer, params, Held::Masters);
  });
  EXPECT_TRUE(same_bits(params, want.params));
}

}  // namespace
}  // namespace braid::post_validation_test
