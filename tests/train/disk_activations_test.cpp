// Activations on disk: the bits of training in memory on every layout, and what memory holds between the passes.
#include <gtest/gtest.h>

#include <atomic>

#include "braid/base/text.h"
#include "braid/param/memory_account.h"
#include "tests/train/layout_run.h"

namespace braid::train::disk_activations_test {
namespace {

// Hidden states of 8 KiB: smaller tensors than a block of the disk stay in memory.
RunSpec spec_of(const MeshSpec& mesh) {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.layers = 2;
  spec.model.context = 32;
  spec.mesh = mesh;
  spec.train.microbatch = 2;
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

RunSpec on_disk(RunSpec spec) {
  spec.memory.activations = Tier::Disk;
  spec.memory.paths = {"."};  // the files have no names
  return spec;
}

// Only memory of activations moves.
class DiskActivations : public testing::Test {
 protected:
  DiskActivations() { param::install_memory_accounting(); }
};

void expect_same_bits(const RunSpec& spec) {
  const LayoutResult want = train_layout(spec), got = train_layout(on_disk(spec));
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.grad_norms, want.grad_norms);
  EXPECT_TRUE(same_bits(got.params, want.params));
  std::atomic<int64_t> written = 0;
  on_every_rank(on_disk(spec), [&](Trainer& trainer) {
    trainer.step();
    written += trainer.model().activations_on_disk()->bytes_written();
  });
  EXPECT_GT(written, 0);
}

TEST_F(DiskActivations, HaveTheBitsOfMemoryForEveryFamilyAndRecomputation) {
  for (const auto family : {ModelFamily::Gpt2, ModelFamily::Llama, ModelFamily::Gemma2, ModelFamily::Bert}) {
    for (const char* recompute : {"none", "selective", "full", "every:2", "blocks:1"}) {
      SCOPED_TRACE(cat(family, " ", recompute));
      RunSpec spec = spec_of({.data = 2});
      spec.model.family = family;
      spec.model.layers = 3;  // of two, recomputed together from tokens, nothing is kept
      spec.model.dropout = family == ModelFamily::Gpt2 || family == ModelFamily::Bert ? 0.1 : 0;
      spec.memory.recompute = recompute;
      expect_same_bits(spec);
    }
  }
}

TEST_F(DiskActivations, HaveTheBitsOfMemoryOverPipelines) {
  for (const char* schedule : {"gpipe", "1f1b", "zb-h1", "interleaved", "zb-v", "dualpipe", "pipedream"}) {
    SCOPED_TRACE(schedule);
    RunSpec spec = spec_of({.pipe = 2});
    spec.model.layers = 4;
    spec.pipeline.schedule = schedule;
    spec.optimizer.clip_norm = 0;
    expect_same_bits(spec);
  }
}

TEST_F(DiskActivations, OfSomeBlocksHaveTheBitsOfMemory) {
  struct Row {
    const char *schedule, *recompute, *blocks;
  };
  for (const Row& row : {Row{"1f1b", "none", "1"}, Row{"gpipe", "full", "1,2"}, Row{"1f1b", "blocks:1,none", "1,0"},
                         Row{"zb-h1", "none", "0,1"}, Row{"interleaved", "blocks:0,none,none,none", "1,1,0,0"}}) {
    SCOPED_TRACE(cat(row.schedule, " ", row.recompute, " ", row.blocks));
    RunSpec spec = spec_of({.pipe = 2});
    spec.model.layers = 4;
    spec.pipeline.schedule = row.schedule;
    spec.memory.recompute = row.recompute;
    spec.memory.activation_blocks = row.blocks;
    expect_same_bits(spec);
  }
}

TEST_F(DiskActivations, HaveTheBitsOfMemoryOverTensorAndContextRanks) {
  for (const char* recompute : {"none", "selective", "full"}) {
    SCOPED_TRACE(recompute);
    RunSpec spec = spec_of({.tensor = 2, .sequence_parallel = true});
    spec.memory.recompute = recompute;
    expect_same_bits(spec);
  }
  for (const auto form : {ContextParallel::Ring, ContextParallel::AllGather, ContextParallel::Ulysses}) {
    SCOPED_TRACE(cat(form));
    RunSpec spec = spec_of({.context = 2});
    spec.mesh.context_parallel = form;
    expect_same_bits(spec);
  }
}

TEST_F(DiskActivations, HaveTheBitsOfMemoryWithOtherTiersAndTypes) {
  for (const auto dtype : {DType::Float32, DType::BFloat16, DType::Float16}) {
    SCOPED_TRACE(cat(dtype));
    RunSpec spec = spec_of({.data = 2});
    spec.model.width *= 4;
    spec.sync.zero = 3;
    spec.train.dtype = dtype;
    spec.memory.optimizer = spec.memory.gradients = spec.memory.parameters = Tier::Disk;
    spec.memory.paths = {"."};
    expect_same_bits(spec);
  }
}

// Backward ends in the second block.
TEST_F(DiskActivations, HaveTheBitsOfMemoryWhereTheFirstBlocksAreFrozen) {
  RunSpec spec = spec_of({});
  spec.model.output_weights = OutputWeights::Untied;
  spec.optimizer.groups = {{.match = "w?e.weight", .frozen = true}, {.match = "blocks.0.*", .frozen = true}};
  expect_same_bits(spec);
}

int64_t most_activations(const RunSpec& spec) {
  int64_t most = 0;
  on_every_rank(spec, [&](Trainer& trainer) {
    param::account_memory_to(0);
    trainer.step();
    param::reset_memory_peak(0);
    trainer.step();
    most = param::memory_use(0).peak_bytes[static_cast<size_t>(param::MemoryCategory::Activations)];
    const param::SwapSpace* const space = trainer.model().activations_on_disk();
    if (space) {
      EXPECT_GT(space->bytes_written(), 0);
      EXPECT_GT(space->bytes_read(), 0);
    }
  });
  return most;
}

// Every tensor has a block of the disk.
RunSpec large_spec(int layers) {
  RunSpec spec = spec_of({});
  spec.model.context = 256;
  spec.train.microbatch = 8;
  spec.model.layers = layers;
  return spec;
}

TEST_F(DiskActivations, OfSomeBlocksLeaveTheOthersInMemory) {
  RunSpec some = on_disk(large_spec(9));
  some.memory.activation_blocks = "3";
  const int64_t of_three = most_activations(large_spec(6)) - most_activations(large_spec(3));
  const int64_t moved = most_activations(large_spec(9)) - most_activations(some);
  EXPECT_NEAR(moved, of_three, of_three / 10);
}

TEST_F(DiskActivations, HoldTwoBlocksHoweverManyThereAre) {
  const RunSpec few = large_spec(3), many = large_spec(9);
  const int64_t of_block = (most_activations(many) - most_activations(few)) / 6;
  EXPECT_GT(of_block, 100'000);
  EXPECT_LT(most_activations(on_disk(many)) - most_activations(on_disk(few)), of_block / 10);
  EXPECT_LT(most_activations(on_disk(many)), most_activations(few));
}

}  // namespace
}  // namespace braid::train::disk_activations_test
