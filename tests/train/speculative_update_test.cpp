// Updates during backward that depend on the gradient norm: the bits of states in memory whether gradients are clipped,
// not clipped, or not finite, and what the disk reads and writes for each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"
#include "tests/train/resumed_tiers.h"

namespace braid::train::speculative_update_test {
namespace {

constexpr double kNeverClips = 1e6;

RunSpec spec_of(const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.layers = 2;
  spec.mesh = mesh;
  spec.train.steps = 8;
  spec.optimizer.lr = 1e-4;  // small, so that norms go up and down with the samples
  spec.optimizer.clip_norm = kNeverClips;
  return spec;
}

RunSpec on_disk(RunSpec spec) {
  spec.memory.optimizer = Tier::Disk;
  spec.memory.paths = {".", "."};  // the files have no names
  spec.memory.chunk_mb = 1.0 / 128;
  return spec;
}

RunSpec all_on_disk(RunSpec spec) {
  spec = on_disk(spec);
  spec.memory.gradients = spec.memory.parameters = Tier::Disk;
  return spec;
}

// Returns the run with a clip_norm between the norms of its steps, so that some are clipped and others are not.
RunSpec clipped_at_times(RunSpec spec) {
  std::vector<double> norms = train_layout(spec).grad_norms;
  std::ranges::nth_element(norms, norms.begin() + std::ssize(norms) / 2);
  spec.optimizer.clip_norm = norms[norms.size() / 2];
  return spec;
}

void expect_equal(const LayoutResult& got, const LayoutResult& want) {
  EXPECT_EQ(got.losses, want.losses);
  for (size_t step = 0; step < want.grad_norms.size(); ++step) {
    const double norm = want.grad_norms[step];
    EXPECT_TRUE(got.grad_norms[step] == norm || (std::isnan(norm) && std::isnan(got.grad_norms[step])));
  }
  EXPECT_TRUE(same_bits(got.params, want.params));
}

// Expects the bits of memory, and that an update follows both a clipped and an unclipped step.
void expect_same_bits(const RunSpec& spec) {
  const LayoutResult want = train_layout(spec);
  const auto clipped = [&](double norm) { return norm >= spec.optimizer.clip_norm; };
  EXPECT_TRUE(std::ranges::any_of(want.grad_norms, clipped));
  const auto unclipped = std::ranges::find_if_not(want.grad_norms, clipped);
  EXPECT_TRUE(std::any_of(unclipped, want.grad_norms.end(), clipped)) << "no update was undone";
  expect_equal(train_layout(on_disk(spec)), want);
  expect_equal(train_layout(all_on_disk(spec)), want);
}

class SpeculativeUpdate : public ScratchFolder {};

TEST_F(SpeculativeUpdate, HasTheBitsOfMemoryWhereSomeStepsAreClipped) {
  for (const char* schedule : {"interleaved", "zb-v"}) {
    SCOPED_TRACE(schedule);
    RunSpec spec = spec_of({.pipe = 2});
    spec.model.layers = 4;
    spec.pipeline.schedule = schedule;
    spec.train.reduction = Reduction::Reproducible;
    expect_same_bits(clipped_at_times(spec));
  }
  struct Stored {
    OptimizerKind kind;
    DType dtype;
    StateType states = StateType::Float32;
  };
  const Stored all[] = {{OptimizerKind::AdamW, DType::Float32},
                        {OptimizerKind::AdamW, DType::BFloat16},
                        {OptimizerKind::AdamW, DType::Float32, StateType::Int8},
                        {OptimizerKind::Sgd, DType::Float32},
                        {OptimizerKind::Lion, DType::BFloat16},
                        {OptimizerKind::Lion, DType::BFloat16, StateType::BFloat16}};
  for (const auto& [kind, dtype, states] : all) {
    SCOPED_TRACE(cat(kind, " ", dtype, " ", states));
    RunSpec spec = spec_of({});
    spec.optimizer.kind = kind;
    spec.optimizer.state_dtype = states;
    spec.train.dtype = dtype;
    spec.train.reduction = Reduction::Reproducible;
    spec.optimizer.groups = {{.match = "*.bias", .lr_scale = 0.5}, {.match = "wpe*", .frozen = true}};
    expect_same_bits(clipped_at_times(spec));
  }
}

// The scale is halved until gradients are finite, and each of these steps is skipped.
TEST_F(SpeculativeUpdate, IsWithdrawnWhereGradientsOverflow) {
  RunSpec spec = spec_of({});
  spec.train.dtype = DType::Float16;
  spec.train.loss_scale = 1 << 28;
  spec.train.reduction = Reduction::Reproducible;
  for (const double clip_norm : {0.0, kNeverClips}) {
    SCOPED_TRACE(clip_norm);
    spec.optimizer.clip_norm = clip_norm;
    const LayoutResult want = train_layout(spec);
    EXPECT_FALSE(std::isfinite(want.grad_norms.front()));
    EXPECT_TRUE(std::isfinite(want.grad_norms.back()));
    expect_equal(train_layout(on_disk(spec)), want);
    expect_equal(train_layout(all_on_disk(spec)), want);
  }
}

// Returns the bytes that each step reads and writes, in multiples of what a state has in float32.
std::vector<std::pair<double, double>> moved(const RunSpec& spec) {
  std::vector<std::pair<double, double>> steps;
  on_every_rank(spec, [&](Trainer& trainer) {
    const param::ParamStore& store = trainer.model().params();
    const disk::Disk& disk = store.disk()->disk();
    const auto state = static_cast<double>(store.num_owned()) * sizeof(float);
    for (int64_t read = 0, written = 0; trainer.num_steps() < 3;) {
      trainer.step();
      steps.emplace_back(static_cast<double>(disk.bytes_read() - read) / state,
                         static_cast<double>(disk.bytes_written() - written) / state);
      read = disk.bytes_read(), written = disk.bytes_written();
    }
  });
  return steps;
}

TEST_F(SpeculativeUpdate, WritesOldValuesOfWeightsInMemoryAlone) {
  RunSpec spec = on_disk(spec_of({}));
  spec.train.dtype = DType::Float32;
  const std::pair<double, double> first{2, 2};  // nothing is expected of the norm of the first step
  EXPECT_EQ(moved(spec), (std::vector<std::pair<double, double>>{first, {2, 3}, {2, 3}}));
  spec.train.dtype = DType::BFloat16;
  EXPECT_EQ(moved(spec), (std::vector<std::pair<double, double>>{{3, 3}, {3, 3}, {3, 3}}));
}

TEST_F(SpeculativeUpdate, UpdatesLaterLayersBeforeBackwardReachesTheFirstAfterAnUnclippedStep) {
  std::vector<bool> early;
  on_every_rank(on_disk(spec_of({})), [&](Trainer& trainer) {
    disk::Disk& disk = trainer.model().params().disk()->disk();
    auto& sink = trainer.model().sink();
    int64_t before = 0;
    sink.on_ready = [&, report = sink.on_ready](const param::Parameter& param) {
      report(param);
      disk.wait_all();
      if (param.name == "wpe.weight") early.push_back(disk.bytes_written() > before);
    };
    for (int step = 0; step < 2; ++step) {
      before = disk.bytes_written();
      trainer.step();
    }
  });
  EXPECT_EQ(early, (std::vector<bool>{false, true}));
}

TEST_F(SpeculativeUpdate, IsSavedAndResumed) {
  for (const auto dtype : {DType::Float32, DType::BFloat16}) {
    RunSpec spec = spec_of({});
    spec.train.dtype = dtype;
    spec.train.reduction = Reduction::Reproducible;
    const auto in_folder = [&](const std::string& name) { return path(cat(dtype, " ", name)); };
    expect_resumes_between_tiers(spec, on_disk, in_folder);
  }
}

}  // namespace
}  // namespace braid::train::speculative_update_test
