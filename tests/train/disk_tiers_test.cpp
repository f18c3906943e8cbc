// Gradients and parameters on disk: the bits of reproducible training in memory, on every layout and between resumed
// runs; what memory holds meanwhile, and what a step moves.
#include <gtest/gtest.h>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"
#include "tests/train/resumed_tiers.h"

namespace braid::train::disk_tiers_test {
namespace {

enum class On { Gradients, Parameters, Both };

class DiskTiers : public ScratchFolder {
 protected:
  RunSpec on_disk(RunSpec spec, On what) {
    spec.memory.optimizer = Tier::Disk;
    if (what != On::Parameters) spec.memory.gradients = Tier::Disk;
    if (what != On::Gradients) spec.memory.parameters = Tier::Disk;
    spec.memory.paths = {"."};  // the files have no names
    spec.memory.chunk_mb = 1.0 / 128;
    return spec;
  }

  void expect_same_bits(const RunSpec& spec) {
    const LayoutResult want = train_layout(spec);
    for (const On what : {On::Gradients, On::Parameters, On::Both}) {
      SCOPED_TRACE(static_cast<int>(what));
      const LayoutResult got = train_layout(on_disk(spec, what));
      EXPECT_EQ(got.losses, want.losses);
      EXPECT_EQ(got.grad_norms, want.grad_norms);
      EXPECT_TRUE(same_bits(got.params, want.params));
    }
  }
};

RunSpec spec_of(const MeshSpec& mesh, int zero = 0) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.layers = 2;
  spec.mesh = mesh;
  spec.sync.zero = zero;
  spec.optimizer.clip_norm = 0.1;
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

TEST_F(DiskTiers, HaveTheBitsOfMemoryOverDataRanks) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    expect_same_bits(spec_of({.data = 2}, zero));
  }
  RunSpec hybrid = spec_of({.data = 4}, 3);
  hybrid.sync.zero_group = 2;
  expect_same_bits(hybrid);
}

TEST_F(DiskTiers, HaveTheBitsOfMemoryOverPipelines) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v", "dualpipe"}) {
    SCOPED_TRACE(schedule);
    RunSpec spec = spec_of({.pipe = 2, .data = 2});
    spec.model.layers = 4;
    spec.pipeline.schedule = schedule;
    expect_same_bits(spec);
  }
}

TEST_F(DiskTiers, HaveTheBitsOfMemoryOverTensorAndContextRanks) {
  for (const char* recompute : {"none", "selective", "full", "every:2"}) {
    SCOPED_TRACE(recompute);
    RunSpec spec = spec_of({.tensor = 2, .sequence_parallel = true});
    spec.model.family = ModelFamily::Llama;
    spec.memory.recompute = recompute;
    expect_same_bits(spec);
  }
  RunSpec spec = spec_of({.context = 2, .tensor = 2});
  spec.model.context = 8;
  expect_same_bits(spec);
}

// Without clipping, parameters are updated while backward goes on.
TEST_F(DiskTiers, HaveTheBitsOfMemoryWhereTheyUpdateDuringBackward) {
  for (const auto weights : {OutputWeights::Tied, OutputWeights::Untied}) {
    for (const int microbatch : {1, 2, 8}) {
      SCOPED_TRACE(cat(weights, " ", microbatch));
      RunSpec spec = spec_of({});
      spec.optimizer.clip_norm = 0;
      spec.model.output_weights = weights;
      spec.train.microbatch = microbatch;
      expect_same_bits(spec);
    }
  }
}

TEST_F(DiskTiers, HaveTheBitsOfMemoryForEveryOptimizerAndType) {
  for (const auto kind : {OptimizerKind::AdamW, OptimizerKind::Sgd, OptimizerKind::Lion}) {
    for (const auto dtype : {DType::Float64, DType::Float32, DType::BFloat16, DType::Float16}) {
      SCOPED_TRACE(cat(kind, " ", dtype));
      RunSpec spec = spec_of({.data = 2}, 1);
      spec.optimizer.kind = kind;
      spec.optimizer.momentum = 0;  // SGD: nothing but weights and gradients is on disk
      spec.train.dtype = dtype;
      spec.optimizer.groups = {{.match = "*.bias", .lr_scale = 0.5}, {.match = "wpe*", .frozen = true}};
      expect_same_bits(spec);
    }
  }
}

TEST_F(DiskTiers, HaveTheBitsOfMemoryForBFloat16States) {
  for (const auto dtype : {DType::Float32, DType::BFloat16}) {
    for (const double clip_norm : {0.0, 0.1}) {
      SCOPED_TRACE(cat(dtype, " ", clip_norm));
      RunSpec spec = spec_of({});
      spec.optimizer.state_dtype = StateType::BFloat16;
      spec.optimizer.clip_norm = clip_norm;
      spec.train.dtype = dtype;
      expect_same_bits(spec);
    }
  }
  RunSpec spec = spec_of({.data = 2}, 3);
  spec.optimizer.state_dtype = StateType::BFloat16;
  spec.train.dtype = DType::BFloat16;
  expect_same_bits(spec);
}

// The first stage has no gradients, or no parameters to update.
TEST_F(DiskTiers, HaveTheBitsOfMemoryWhereAPipelineRankIsFrozen) {
  RunSpec spec = spec_of({.pipe = 2});
  spec.model.output_weights = OutputWeights::Untied;
  spec.optimizer.groups = {{.match = "head.weight"}, {.match = "*", .frozen = true}};
  for (const double clip_norm : {0.0, 0.1}) {
    spec.optimizer.clip_norm = clip_norm;
    expect_same_bits(spec);
  }
}

// Fast sums of one microbatch have one order, on every tier.
TEST_F(DiskTiers, HaveTheBitsOfMemoryWhereOneMicrobatchIsSummedFast) {
  RunSpec spec = spec_of({});
  spec.train.reduction = Reduction::Fast;
  spec.train.microbatch = spec.train.batch;
  expect_same_bits(spec);
}

// Several microbatches are added up in the order of shards in memory.
TEST_F(DiskTiers, HaveTheBitsOfShardsWhereMicrobatchesAreSummedFast) {
  for (const int zero : {2, 3}) {
    RunSpec spec = spec_of({.data = 2}, zero);
    spec.train.reduction = Reduction::Fast;
    expect_same_bits(spec);
  }
}

TEST_F(DiskTiers, HoldNoParametersAndNoGradientsBetweenSteps) {
  for (const auto dtype : {DType::Float32, DType::BFloat16}) {
    RunSpec spec = on_disk(spec_of({}), On::Both);
    spec.train.dtype = dtype;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.step();
      const auto use = param::memory_use(0).bytes;
      EXPECT_EQ(use[static_cast<size_t>(param::MemoryCategory::Parameters)], 0);
      EXPECT_EQ(use[static_cast<size_t>(param::MemoryCategory::Gradients)], 0);
      const auto& params = trainer.model().params().params();
      EXPECT_THROW(params.front().data.sum(), c10::Error) << "in memory only while its layer runs";
    });
  }
}

TEST_F(DiskTiers, ResumeWhereAllIsInMemoryAndTheOtherWayRound) {
  RunSpec spec = spec_of({.data = 2}, 1);
  spec.train.dtype = DType::BFloat16;
  expect_resumes_between_tiers(
      spec, [&](const RunSpec& run) { return on_disk(run, On::Both); },
      [&](const std::string& name) { return path(name); });
}

}  // namespace
}  // namespace braid::train::disk_tiers_test
