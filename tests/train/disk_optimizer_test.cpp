// Optimizer states on disk: the bits of states in memory, on every layout and between resumed runs, and no more bytes
// moved than one reading and one writing of each state in a step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/disk/aligned_buffer.h"
#include "braid/disk/mapping.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"
#include "tests/train/resumed_tiers.h"

namespace braid::train::disk_optimizer_test {
namespace {

class DiskOptimizer : public ScratchFolder {
 protected:
  // The same run with its states on disk, in many chunks of 8 KiB on two folders.
  RunSpec on_disk(RunSpec spec) {
    spec.memory.optimizer = Tier::Disk;
    spec.memory.paths = {".", "."};  // the files have no names
    spec.memory.chunk_mb = 1.0 / 128;
    return spec;
  }

  void expect_same_bits(const RunSpec& spec) {
    const LayoutResult want = train_layout(spec), got = train_layout(on_disk(spec));
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.grad_norms, want.grad_norms);
    EXPECT_TRUE(same_bits(got.params, want.params));
  }
};

RunSpec spec_of(const MeshSpec& mesh, int zero = 0) {
  RunSpec spec = tiny_spec(2, 8);
  spec.model.layers = 2;
  spec.mesh = mesh;
  spec.sync.zero = zero;
  spec.optimizer.clip_norm = 0.1;
  return spec;
}

TEST_F(DiskOptimizer, HasTheBitsOfStatesInMemoryOnEveryLayout) {
  for (const int zero : {0, 1, 2, 3}) {
    SCOPED_TRACE(zero);
    expect_same_bits(spec_of({.pipe = 2, .data = 2}, zero));
  }
  expect_same_bits(spec_of({.tensor = 2}));
  RunSpec spec = spec_of({.pipe = 2, .data = 2, .tensor = 2}, 1);
  spec.memory.recompute = "full";
  spec.train.reduction = Reduction::Reproducible;
  spec.pipeline.schedule = "zb-h1";
  expect_same_bits(spec);
}

// States of 2 bytes: two slices of the flat buffers share a block of the disk.
TEST_F(DiskOptimizer, HasTheBitsOfBFloat16StatesInMemory) {
  bool has_odd_slice = false;
  for (const auto kind : {OptimizerKind::AdamW, OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::Lion}) {
    for (const auto dtype : {DType::Float32, DType::BFloat16}) {
      const int zero = dtype == DType::Float32 ? 1 : 0;
      SCOPED_TRACE(cat(kind, " ", dtype));
      RunSpec spec = spec_of({.data = 2}, zero);
      spec.optimizer.kind = kind;
      spec.optimizer.state_dtype = StateType::BFloat16;
      spec.train.dtype = dtype;
      spec.optimizer.groups = {{.match = "*.bias", .lr_scale = 0.5}, {.match = "wpe*", .frozen = true}};
      expect_same_bits(spec);
      on_every_rank(on_disk(spec), [&](Trainer& trainer) {
        const param::ParamStore& store = trainer.model().params();
        if (trainer.model().groups().at[mesh::Axis::Data] > 0) return;
        has_odd_slice = has_odd_slice || store.num_owned() / param::ParamStore::kAlign % 2 == 1;
      });
    }
  }
  EXPECT_TRUE(has_odd_slice) << "the last block is half of one in no layout";
  RunSpec spec = spec_of({.pipe = 2, .data = 2, .tensor = 2}, 3);
  spec.optimizer.state_dtype = StateType::BFloat16;
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  expect_same_bits(spec);
  spec.mesh = {}, spec.sync = {};
  spec.optimizer.clip_norm = 0;  // updates during backward
  expect_same_bits(spec);
}

// Without clipping, parameters are updated while backward goes on.
TEST_F(DiskOptimizer, HasTheBitsOfStatesInMemoryWhereItUpdatesDuringBackward) {
  const auto unclipped = [](RunSpec spec) {
    spec.optimizer.clip_norm = 0;
    return spec;
  };
  for (const char* schedule : {"1f1b", "zb-h1", "interleaved", "zb-v"}) {
    SCOPED_TRACE(schedule);
    RunSpec spec = unclipped(spec_of({.pipe = 2}));
    spec.model.layers = 4;
    spec.model.output_weights = OutputWeights::Untied;  // tied weights on two ranks are updated after backward
    spec.pipeline.schedule = schedule;
    expect_same_bits(spec);
  }
  for (const auto family : {ModelFamily::Gpt2, ModelFamily::Llama, ModelFamily::Bert}) {
    for (const char* recompute : {"none", "selective", "full"}) {
      SCOPED_TRACE(cat(family, " ", recompute));
      RunSpec spec = unclipped(spec_of({.tensor = 2, .sequence_parallel = true}));
      spec.model.family = family;
      spec.memory.recompute = recompute;
      expect_same_bits(spec);
    }
  }
  RunSpec spec = unclipped(spec_of({}));
  spec.train.reduction = Reduction::Reproducible;
  spec.train.dtype = DType::BFloat16;
  spec.model.output_weights = OutputWeights::Untied;
  spec.model.dropout = 0.2;
  expect_same_bits(spec);
}

// Returns a run of replicas whose shards have several chunks.
RunSpec replicas(const MeshSpec& mesh, int zero) {
  RunSpec spec = spec_of(mesh, zero);
  spec.model.layers = 4;
  spec.model.width = 16;
  spec.model.context = 8;
  spec.sync.overlap = OverlapChoice::On;
  spec.sync.bucket_mb = spec.sync.first_bucket_mb = 0.002;  // a bias may be in another bucket than its matrix
  spec.optimizer.clip_norm = 0;
  return spec;
}

TEST_F(DiskOptimizer, HasTheBitsOfStatesInMemoryWhereItUpdatesReplicasDuringBackward) {
  for (const MeshSpec& mesh : {MeshSpec{.data = 2}, MeshSpec{.context = 2}, MeshSpec{.pipe = 2, .data = 2}}) {
    for (const int zero : {0, 1, 2, 3}) {
      for (const auto reduction : {Reduction::Fast, Reduction::Reproducible}) {
        SCOPED_TRACE(cat(mesh.pipe, " ", mesh.data, " ", zero, " ", reduction));
        RunSpec spec = replicas(mesh, zero);
        spec.model.output_weights = OutputWeights::Untied;
        spec.train.reduction = reduction;
        expect_same_bits(spec);
      }
    }
  }
  RunSpec spec = replicas({.data = 2}, 0);
  spec.sync.compression = CompressionKind::BFloat16;  // decoded after backward
  expect_same_bits(spec);
  spec = replicas({.data = 4}, 2);
  spec.sync.zero_group = 2;
  expect_same_bits(spec);
}

// Returns the part of its states that a rank has written when backward ends the second block; the least of all ranks
// and of three steps. Buckets are launched in the order of the plan in the first step, then as they are ready.
double written_at_the_second_block(const RunSpec& spec) {
  double least = 1;
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    const param::ParamStore& store = trainer.model().params();
    disk::Disk& disk = store.disk()->disk();
    const auto bytes = static_cast<double>(2 * store.num_owned()) * sizeof(double);  // two moments
    int64_t before = 0;
    auto& sink = trainer.model().sink();
    sink.on_ready = [&, report = sink.on_ready](const param::Parameter& param) {
      const bool is_there = param.name == "blocks.1.ln_1.weight";
      // All gradients of later blocks are on their way, on all replicas.
      if (is_there) trainer.model().groups().replicas().replicas.barrier().wait_host();
      report(param);
      disk.wait_all();
      const std::scoped_lock hold(lock);
      if (is_there) least = std::min(least, static_cast<double>(disk.bytes_written() - before) / bytes);
    };
    for (; trainer.num_steps() < 3; before = disk.bytes_written()) trainer.step();
  });
  return least;
}

TEST_F(DiskOptimizer, UpdatesLaterBlocksBeforeBackwardReachesTheFirst) {
  EXPECT_EQ(written_at_the_second_block(on_disk(spec_of({}))), 0) << "clipped";
  EXPECT_GT(written_at_the_second_block(on_disk(replicas({}, 0))), 0.25);
  for (const MeshSpec& mesh : {MeshSpec{.data = 2}, MeshSpec{.context = 2}}) {
    for (const int zero : {0, 1, 2, 3}) {
      EXPECT_GT(written_at_the_second_block(on_disk(replicas(mesh, zero))), 0.25) << mesh.data << " " << zero;
    }
  }
}

TEST_F(DiskOptimizer, HasTheBitsOfStatesInMemoryForEveryOptimizerAndType) {
  for (const auto kind : {OptimizerKind::AdamW, OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::Lion}) {
    for (const auto dtype : {DType::Float64, DType::Float32, DType::BFloat16, DType::Float16}) {
      SCOPED_TRACE(cat(kind, " ", dtype));
      RunSpec spec = spec_of({.data = 2}, 1);
      spec.optimizer.kind = kind;
      spec.train.dtype = dtype;
      spec.optimizer.groups = {{.match = "*.bias", .lr_scale = 0.5}, {.match = "wpe*", .frozen = true}};
      expect_same_bits(spec);
    }
  }
}

TEST_F(DiskOptimizer, EachStateIsReadAndWrittenOnceInAStep) {
  RunSpec spec = on_disk(spec_of({.data = 2}, 1));
  spec.train.dtype = DType::BFloat16;
  on_every_rank(spec, [&](Trainer& trainer) {
    const param::ParamStore& store = trainer.model().params();
    ASSERT_NE(store.disk(), nullptr);
    const int64_t bytes = 3 * store.num_owned() * int64_t{sizeof(float)};  // masters and two moments
    for (int steps = 1; steps <= 2; ++steps) {
      EXPECT_EQ(trainer.step().disk_bytes, 2 * bytes);
      EXPECT_EQ(store.disk()->disk().bytes_read(), steps * bytes);
      EXPECT_EQ(store.disk()->disk().bytes_written(), steps * bytes);
    }
  });
}

TEST_F(DiskOptimizer, HalfTheBytesOfBFloat16StatesAreMoved) {
  for (const auto dtype : {DType::Float32, DType::BFloat16}) {
    RunSpec spec = on_disk(spec_of({.data = 2}, 1));
    spec.train.dtype = dtype;
    spec.optimizer.state_dtype = StateType::BFloat16;
    on_every_rank(spec, [&](Trainer& trainer) {
      const param::ParamStore& store = trainer.model().params();
      const int64_t masters = dtype == DType::BFloat16 ? store.num_owned() * int64_t{sizeof(float)} : 0;
      const int64_t bytes = masters + 2 * disk::whole_blocks(store.num_owned() * 2);
      trainer.step();
      EXPECT_EQ(store.disk()->disk().bytes_read(), bytes);
      EXPECT_EQ(store.disk()->disk().bytes_written(), bytes);
    });
  }
}

TEST_F(DiskOptimizer, BytesThatChangedOnTheDiskAreNotSaved) {
  const RunSpec spec = on_disk(spec_of({}));
  on_every_rank(spec, [&](Trainer& trainer) {
    const param::ParamStore& store = trainer.model().params();
    disk::Mapping bytes(store.disk()->disk(), disk::kBlockBytes);
    bytes.bytes()[100] ^= std::byte{1};  // nothing was written by the disk yet
    trainer.step();
    EXPECT_NO_THROW(trainer.save(path("whole"), ""));
    bytes.bytes()[100] ^= std::byte{1};
    EXPECT_THROW(trainer.save(path("changed"), ""), RunError);
    EXPECT_FALSE(std::filesystem::exists(path("changed")));
  });
}

TEST_F(DiskOptimizer, WithoutStatesOpensNoDisk) {
  RunSpec spec = on_disk(spec_of({}));
  spec.optimizer.kind = OptimizerKind::Sgd;
  spec.optimizer.momentum = 0;
  on_every_rank(spec, [&](Trainer& trainer) { EXPECT_EQ(trainer.model().params().disk(), nullptr); });
  expect_same_bits(spec);
}

TEST_F(DiskOptimizer, ResumesWhereStatesAreInMemoryAndTheOtherWayRound) {
  for (const auto states : {StateType::Float32, StateType::BFloat16}) {
    RunSpec spec = spec_of({.data = 2}, 1);
    spec.train.dtype = DType::BFloat16;
    spec.optimizer.state_dtype = states;
    expect_resumes_between_tiers(
        spec, [&](const RunSpec& run) { return on_disk(run); },
        [&](const std::string& name) { return path(cat(name, word(states))); });
  }
}

}  // namespace
}  // namespace braid::train::disk_optimizer_test
