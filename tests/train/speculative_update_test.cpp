// Updates during backward that depend on the gradient norm: the bits of states in memory whether gradients are clipped,
// not clipped, or not finite, and what the disk reads and writes for each.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/faulty_communicator.h"
#include "tests/train/layout_run.h"
#include "tests/train/poisoned_model.h"
#include "tests/train/resumed_tiers.h"

namespace braid::train::speculative_update_test {
namespace {

constexpr double kNeverClips = 1e6;

RunSpec spec_of(const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.layers = 2;
  spec.mesh = mesh;
  if (mesh.pipe > 1) spec.model.output_weights = OutputWeights::Untied;  // else no update is made during backward
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
  for (const int zero : {1, 3}) {
    SCOPED_TRACE(zero);
    RunSpec spec = spec_of({.data = 2});
    spec.model.layers = 4;
    spec.model.width = 16;
    spec.sync.zero = zero;
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

// Makes five steps, whose third is a spike. Expects that it changes no weight. Returns the masters after the last step,
// or after the spike if that ends the run.
std::map<std::string, at::Tensor> masters_after_spike(const RunSpec& spec) {
  std::map<std::string, at::Tensor> masters;
  std::mutex lock;
  on_every_rank(spec, kPoisoned, [&](Trainer& trainer) {
    const param::ParamStore& store = trainer.model().params();
    while (trainer.num_steps() < 2) trainer.step();
    const at::Tensor data = store.flat_data().detach().clone(), master = store.flat_master().detach().clone();
    try {
      trainer.step();
    } catch (const RunError&) {
      EXPECT_EQ(spec.train.on_spike, OnSpike::Stop);
    }
    EXPECT_TRUE(store.flat_data().equal(data));
    EXPECT_TRUE(store.flat_master().equal(master));
    while (spec.train.on_spike == OnSpike::Skip && trainer.num_steps() < 5) trainer.step();
    const std::scoped_lock hold(lock);
    collect(trainer, masters, Held::Masters);
  });
  return masters;
}

// Later updates also have the bits of states.
TEST_F(SpeculativeUpdate, IsWithdrawnAtASpike) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  RunSpec spec = spec_of({.pipe = 2});
  spec.train.reduction = Reduction::Reproducible;
  poison = {spec.train.batch / spec.train.microbatch, 3, 3, kNan};
  for (const auto on_spike : {OnSpike::Skip, OnSpike::Rollback, OnSpike::Stop}) {
    for (const auto dtype : {DType::Float32, DType::BFloat16}) {
      SCOPED_TRACE(cat(static_cast<int>(on_spike), " ", dtype));
      spec.train.on_spike = on_spike;
      spec.train.dtype = dtype;
      spec.optimizer.clip_norm = on_spike == OnSpike::Stop ? kNeverClips : 0;
      const auto want = masters_after_spike(spec);
      EXPECT_TRUE(same_bits(masters_after_spike(on_disk(spec)), want));
      EXPECT_TRUE(same_bits(masters_after_spike(all_on_disk(spec)), want));
    }
  }
  poison = {};
}

TEST_F(SpeculativeUpdate, IsWithdrawnWhereTheNormIsWrong) {
  RunSpec spec = on_disk(spec_of({.pipe = 2}));
  spec.train.check = NormCheck::EveryStep;
  const data::Corpus corpus = tiny_corpus();
  run_ranks(2, [&](Communicator& ranks) {
    at::get_num_threads();
    at::set_num_threads(1);
    Fault fault;
    FaultyCommunicator world(ranks, fault);
    Trainer trainer(spec, corpus, world);
    trainer.step();
    const at::Tensor& weights = trainer.model().params().flat_data();
    const at::Tensor before = weights.detach().clone();
    fault = {"gradient norm", FaultKind::Doubled};
    EXPECT_THROW(trainer.step(), RunError);
    EXPECT_TRUE(weights.equal(before));
  });
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

TEST_F(SpeculativeUpdate, IsNotMadeAfterAClippedStep) {
  RunSpec spec = on_disk(spec_of({}));
  spec.train.dtype = DType::Float32;
  spec.optimizer.clip_norm = 1e-3;
  EXPECT_EQ(moved(spec), (std::vector<std::pair<double, double>>(3, {2, 2})));
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

TEST_F(SpeculativeUpdate, HasNoSecondCopyWhereReplicasSumAfterBackward) {
  const auto copies = [](const RunSpec& spec) {
    param::Copies of_all = param::Copies::One;
    std::mutex lock;
    on_every_rank(spec, [&](Trainer& trainer) {
      const std::scoped_lock hold(lock);
      of_all = trainer.model().params().disk()->copies();
    });
    return of_all;
  };
  RunSpec spec = on_disk(spec_of({.data = 4}));
  EXPECT_EQ(copies(spec), param::Copies::Two);
  RunSpec late = spec;
  late.sync.overlap = OverlapChoice::Off;
  EXPECT_EQ(copies(late), param::Copies::One);
  late = spec;
  late.sync.compression = CompressionKind::BFloat16;
  EXPECT_EQ(copies(late), param::Copies::One);
  late = spec;
  late.memory.gradients = Tier::Disk;
  EXPECT_EQ(copies(late), param::Copies::One);
  late.sync.zero = 2;
  EXPECT_EQ(copies(late), param::Copies::Two);
  late.sync.zero_group = 2;
  EXPECT_EQ(copies(late), param::Copies::One);
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
