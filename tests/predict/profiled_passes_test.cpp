// Qi et al., "Zero Bubble Pipeline Parallelism" (2023): the pass times that they profiled (table 9) through the
// simulator, beside the throughput that they measured (table 4).
//
// The target is 3 %, and it is missed. Table 9 has one time for each pass, the mean of the stages, and its sums alone
// are 9 % less than the time of a microbatch in table 4 where no bubble is left (zb-2p, m = 64 and 128), so equal
// stages make every step too short, by 4 to 15 %. A stage that is slower than the mean may be what the rest is: with
// the ratios that are predicted for the stages (the last has the head), and ranks of 1f1b and interleaved that wait for
// each exchange, steps of 1.5B are 3 to 10 % too long, and those of 14.6B, where the head takes less than the block
// that it stands for, still 6 to 9 % too short.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/cluster/cluster_presets.h"
#include "braid/predict/pipeline_outcome.h"
#include "braid/predict/stage_passes.h"
#include "tests/predict/published_rows.h"

namespace braid::profiled_passes_test {
namespace {

// Milliseconds.
struct Profile {
  int devices, microbatches;
  double forward, input_grad, weight_grad, transfer;
};

constexpr Profile kTable9[] = {
    {8, 24, 18.522, 18.086, 9.337, 0.601},  {8, 32, 18.513, 18.086, 9.331, 0.626},
    {8, 64, 18.546, 18.097, 9.321, 0.762},  {16, 48, 11.347, 11.248, 8.132, 0.377},
    {16, 64, 11.307, 11.254, 8.101, 0.379}, {16, 128, 11.325, 11.308, 8.109, 0.378},
};

enum class Stages { Alike, AsPredicted };

std::vector<StageTimes> stage_times(const PublishedRow& row, const Profile& profile, Stages stages) {
  Cluster cluster = cluster_preset(row.cluster).value();
  const RunLayout layout = layout_of(row.run, cluster, row.formulas);
  const std::vector<StagePasses> predicted = stage_passes(row.run, layout, cluster, row.formulas);
  StageTimes sum{0, 0, 0};
  for (const StagePasses& stage : predicted) {
    sum.forward += stage.forward.total();
    sum.input_grad += stage.input_grad.total();
    sum.weight_grad += stage.weight_grad.total();
  }
  const double all = row.devices, each = all / static_cast<double>(predicted.size());
  std::vector<StageTimes> times;
  for (const StagePasses& stage : predicted) {
    StageTimes time{each * profile.forward, each * profile.input_grad, each * profile.weight_grad};
    if (stages == Stages::AsPredicted) {
      time = {all * profile.forward * stage.forward.total() / sum.forward,
              all * profile.input_grad * stage.input_grad.total() / sum.input_grad,
              all * profile.weight_grad * stage.weight_grad.total() / sum.weight_grad};
    }
    times.push_back(time);
  }
  return times;
}

// The step of a row of table 4, in milliseconds.
double played(const PublishedRow& row, const Profile& profile, Stages stages) {
  PipelineQuestion question;
  question.schedule = row.run.pipeline.schedule;
  question.request.ranks = row.devices;
  question.request.microbatches = profile.microbatches;
  question.request.chunks = row.run.pipeline.chunks;
  question.stages = stage_times(row, profile, stages);
  const double h = row.run.model.width, s = row.run.model.context, a = row.run.model.heads;
  question.held.assign(question.stages.size(), {34 * h + 5 * a * s, 32 * h});
  const bool splits = find_schedule(question.schedule)->splits_backward;
  if (splits) question.end = StepEnd::PostValidated;
  if (splits || stages == Stages::Alike) {
    question.transfer = profile.transfer;
  } else {
    for (StageTimes& stage : question.stages) stage.forward += profile.transfer, stage.input_grad += profile.transfer;
  }
  return pipeline_outcome(question, PipelineDetail::Played).seconds;
}

struct Errors {
  double mean = 0, least = 1, most = -1;
};

Errors errors(int devices, Stages stages) {
  Errors found;
  int count = 0;
  for (const PublishedRow& row : zero_bubble_rows()) {
    if (row.devices != devices) continue;
    for (const Profile& profile : kTable9) {
      const int microbatches = row.run.train.batch / row.run.train.microbatch;
      if (profile.devices != devices || profile.microbatches != microbatches) continue;
      const double error = played(row, profile, stages) / (1000 * row.seconds) - 1;
      found.mean += std::abs(error);
      found.least = std::min(found.least, error);
      found.most = std::max(found.most, error);
      ++count;
    }
  }
  EXPECT_EQ(count, 12);
  found.mean /= count;
  return found;
}

void expect_errors(int devices, Stages stages, const Errors& wanted) {
  const Errors found = errors(devices, stages);
  EXPECT_NEAR(found.mean, wanted.mean, 1e-3) << devices;
  EXPECT_NEAR(found.least, wanted.least, 1e-3) << devices;
  EXPECT_NEAR(found.most, wanted.most, 1e-3) << devices;
}

TEST(ProfiledPasses, OfStagesThatAreAlike) {
  expect_errors(8, Stages::Alike, {0.0738, -0.1069, -0.0449});
  expect_errors(16, Stages::Alike, {0.0997, -0.1458, -0.0759});
}

TEST(ProfiledPasses, OfStagesInThePredictedRatios) {
  expect_errors(8, Stages::AsPredicted, {0.0608, 0.0277, 0.1007});
  expect_errors(16, Stages::AsPredicted, {0.0677, -0.0905, -0.0551});
}

// What no schedule can beat: the printed passes, one after the other.
TEST(ProfiledPasses, AreTogetherLessThanAMeasuredMicrobatch) {
  int rows = 0;
  for (const PublishedRow& row : zero_bubble_rows()) {
    const int microbatches = row.run.train.batch / row.run.train.microbatch;
    if (row.run.pipeline.schedule != "zb-2p" || microbatches != 8 * row.devices) continue;
    const Profile& last = kTable9[row.devices == 8 ? 2 : 5];
    const double sum = last.forward + last.input_grad + last.weight_grad;
    EXPECT_NEAR(microbatches * sum / (1000 * row.seconds), 0.91, 0.005);
    ++rows;
  }
  EXPECT_EQ(rows, 2);
}

}  // namespace
}  // namespace braid::profiled_passes_test
