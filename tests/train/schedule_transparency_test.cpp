// Every synchronous schedule trains the serial model: in float64 to rounding, in reproducible float32 bit for bit.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "braid/base/text.h"
#include "braid/schedule/csv.h"
#include "braid/schedule/generators.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::schedule_transparency_test {
namespace {

constexpr int kMicrobatches = 8;  // per data rank; the schedules for 4 ranks need as many

std::vector<ScheduleOnMesh> layouts() {
  const MeshSpec meshes[] = {{.pipe = 1},
                             {.pipe = 2},
                             {.pipe = 4},
                             {.pipe = 2, .data = 2},
                             {.pipe = 2, .tensor = 2},
                             {.pipe = 2, .data = 2, .tensor = 2},
                             {.pipe = 4, .data = 2}};
  std::vector<ScheduleOnMesh> all;
  for (const ScheduleTraits& traits : schedule_traits()) {
    for (const MeshSpec& mesh : meshes) {
      const bool possible = schedule_problems(traits.name, {mesh.pipe, kMicrobatches}).empty();
      if (possible && !traits.asynchronous()) all.push_back({std::string(traits.name), mesh});
    }
  }
  return sampled(all, 3);
}

RunSpec spec_for(const ScheduleOnMesh& layout) {
  RunSpec spec = tiny_spec(6, kMicrobatches * layout.mesh.data);
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  return spec;
}

// One rank, the whole batch in one microbatch.
const LayoutResult& serial(int batch) {
  static std::map<int, LayoutResult> known;
  if (!known.contains(batch)) {
    RunSpec spec = tiny_spec(6, batch);
    spec.train.microbatch = batch;
    known[batch] = train_layout(spec);
  }
  return known[batch];
}

void expect_the_serial_training(const RunSpec& spec) {
  const LayoutResult& want = serial(spec.train.batch);
  const LayoutResult got = train_layout(spec);
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses.at(step), want.losses[step], 1e-10);
    EXPECT_NEAR(got.grad_norms.at(step), want.grad_norms[step], 1e-10);
  }
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

class ScheduleTransparency : public testing::TestWithParam<ScheduleOnMesh> {};

TEST_P(ScheduleTransparency, LossGradientsAndParametersAreTheSerialOnes) {
  expect_the_serial_training(spec_for(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, ScheduleTransparency, testing::ValuesIn(layouts()),
                         [](const auto& info) { return cat(info.param); });

TEST(ScheduleTransparencyOfChunks, AnyNumberOfChunksTrainsTheSameModel) {
  for (const char* schedule : {"interleaved", "looped-bfs", "interleaved-zb"}) {
    for (const int chunks : {1, 3, 4}) {
      RunSpec spec = spec_for({schedule, {.pipe = 2}});
      spec.pipeline.chunks = chunks;
      SCOPED_TRACE(cat(schedule, " ", chunks));
      expect_the_serial_training(spec);
    }
  }
}

class ScheduleTransparencyOfFiles : public ScratchFolder {};

TEST_F(ScheduleTransparencyOfFiles, ATableOfActionsTrainsTheSameModel) {
  write(path("table.csv"), schedule::to_csv(make_schedule("zb-v", {2, kMicrobatches})));
  expect_the_serial_training(spec_for({"file:" + path("table.csv"), {.pipe = 2}}));
}

// The norm is looked at in all of them before the update, and dropout follows the microbatch.
TEST(ScheduleTransparencyOfDropout, MasksDoNotDependOnTheSchedule) {
  RunSpec spec = tiny_spec(6, kMicrobatches);
  spec.model.dropout = 0.3;
  const LayoutResult want = train_layout(spec);
  for (const char* schedule : {"zb-v", "interleaved", "dualpipe"}) {
    spec.mesh.pipe = 2;
    spec.pipeline.schedule = schedule;
    EXPECT_LT(largest_difference(train_layout(spec).params, want.params), 1e-10) << schedule;
  }
}

// The training of the tensor ranks alone.
const LayoutResult& bits_without_schedule(const RunSpec& layout) {
  static std::map<std::pair<int, int>, LayoutResult> known;
  const auto [place, is_new] = known.try_emplace({layout.mesh.tensor, layout.train.batch});
  if (is_new) {
    RunSpec alone = layout;
    alone.mesh = {.tensor = layout.mesh.tensor};
    alone.pipeline.schedule = "gpipe";
    place->second = train_layout(alone);
  }
  return place->second;
}

class ScheduleBits : public testing::TestWithParam<ScheduleOnMesh> {};

TEST_P(ScheduleBits, AreThoseOfOneRank) {
  RunSpec spec = spec_for(GetParam());
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  const LayoutResult &want = bits_without_schedule(spec), got = train_layout(spec);
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.grad_norms, want.grad_norms);
  EXPECT_TRUE(same_bits(got.params, want.params));
}

INSTANTIATE_TEST_SUITE_P(EverySchedule, ScheduleBits, testing::ValuesIn(layouts()),
                         [](const auto& info) { return cat(info.param); });

double validation_loss(const RunSpec& spec) {
  double loss = 0;
  on_every_rank(spec, [&](Trainer& trainer) {
    const double mine = trainer.evaluate();
    if (trainer.groups().world.rank() == 0) loss = mine;
  });
  return loss;
}

TEST(ScheduleTransparencyOfEvaluation, TheValidationLossIsTheSame) {
  const double want = validation_loss(tiny_spec(6, kMicrobatches));
  for (const char* schedule : {"interleaved", "zb-v", "dualpipev", "dualpipe"}) {
    EXPECT_NEAR(validation_loss(spec_for({schedule, {.pipe = 2}})), want, 1e-10) << schedule;
  }
}

}  // namespace
}  // namespace braid::train::schedule_transparency_test
