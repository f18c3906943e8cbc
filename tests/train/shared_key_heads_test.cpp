// More tensor ranks than key heads: neighbouring ranks hold copies of a head. They train the model of one rank, their
// copies stay equal, and checkpoints hold each head once.
#include <gtest/gtest.h>

#include <mutex>
#include <string_view>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::shared_key_heads_test {
namespace {

// A model of Qwen 3's shape with biases: it has every op of a layer that reads keys.
RunSpec spec_of(int heads, int key_heads) {
  RunSpec spec = tiny_spec(heads, 8);
  spec.model.family = ModelFamily::Llama;
  spec.model.kv_heads = key_heads;
  spec.model.layers = 2;
  spec.model.ffn = 24;
  spec.model.qkv_bias = true;
  spec.model.qk_norm = true;
  spec.optimizer.clip_norm = 0.1;  // clips, so every weight depends on the norm of all gradients
  spec.data.paths = {"text"};      // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

struct Layout {
  int heads, key_heads;
  MeshSpec mesh;
  const char* name;
  void (*change)(RunSpec& spec);
};

void nothing(RunSpec&) {}

const std::vector<Layout> kLayouts = {
    {6, 1, {.tensor = 2}, "plain", nothing},
    {6, 2, {.tensor = 6}, "three copies", nothing},
    {6, 3, {.tensor = 6}, "two copies", nothing},
    {6, 1, {.tensor = 6}, "one head", nothing},
    {12, 2, {.tensor = 4}, "several queries on a rank", nothing},
    {6, 1, {.data = 2, .tensor = 2}, "zero 1", [](RunSpec& spec) { spec.sync.zero = 1; }},
    {6, 1, {.data = 2, .tensor = 3}, "zero 3", [](RunSpec& spec) { spec.sync.zero = 3; }},
    {6, 1, {.pipe = 2, .tensor = 2}, "zero bubble", [](RunSpec& spec) { spec.pipeline.schedule = "zb-h1"; }},
    {6, 3, {.pipe = 2, .tensor = 6}, "both directions", [](RunSpec& spec) { spec.pipeline.schedule = "dualpipe"; }},
    {6, 1, {.tensor = 2}, "recompute", [](RunSpec& spec) { spec.memory.recompute = "full"; }},
    {6, 1, {.tensor = 2}, "reproducible", [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {6, 1, {.tensor = 3}, "muon", [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; }},
};

TEST(SharedKeyHeads, TrainTheModelOfOneRank) {
  for (const Layout& layout : sampled(kLayouts, 5)) {
    SCOPED_TRACE(cat(layout.name, ": ", layout.key_heads, " of ", layout.heads, " heads, tensor ", layout.mesh.tensor));
    RunSpec spec = spec_of(layout.heads, layout.key_heads);
    if (std::string_view(layout.name) == "muon") spec.optimizer.kind = OptimizerKind::Muon;
    const LayoutResult want = train_layout(spec);
    spec.mesh = layout.mesh;
    layout.change(spec);
    const LayoutResult got = train_layout(spec);
    for (size_t step = 0; step < want.losses.size(); ++step) {
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10);
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-10);
    }
    EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), 1e-10);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-8);
  }
}

// The bits of data and pipeline layouts are those of tensor ranks alone: copies are summed for each microbatch.
TEST(SharedKeyHeads, DataAndPipelineLayoutsGiveTheSameBits) {
  RunSpec spec = spec_of(6, 1);
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  spec.mesh.tensor = 2;
  const LayoutResult want = train_layout(spec);
  for (const MeshSpec& mesh :
       {MeshSpec{.data = 2, .tensor = 2}, MeshSpec{.pipe = 2, .tensor = 2}, MeshSpec{.data = 4, .tensor = 2}}) {
    spec.mesh = mesh;
    spec.sync.zero = mesh.data == 4 ? 2 : 0;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses) << "pipe " << mesh.pipe << ", data " << mesh.data;
    EXPECT_EQ(got.grad_norms, want.grad_norms) << "pipe " << mesh.pipe << ", data " << mesh.data;
    EXPECT_TRUE(same_bits(got.params, want.params)) << "pipe " << mesh.pipe << ", data " << mesh.data;
  }
}

TEST(SharedKeyHeads, CopiesStayEqual) {
  RunSpec spec = spec_of(6, 2);
  spec.train.dtype = DType::Float32;
  spec.mesh = {.data = 2, .tensor = 6};
  on_every_rank(spec, [](Trainer& trainer) {
    trainer.step();
    trainer.step();
    EXPECT_TRUE(trainer.check_replicas());
  });
}

class SharedKeyHeadsCheckpoint : public ScratchFolder {};

TEST_F(SharedKeyHeadsCheckpoint, IsThatOfOneRank) {
  RunSpec spec = spec_of(6, 2);
  std::map<std::string, at::Tensor> saved, loaded;
  std::mutex lock;
  spec.mesh = {.data = 2, .tensor = 6};
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.step();
    trainer.save(path("saved"), "");
    const std::scoped_lock hold(lock);
    collect(trainer, saved, Held::Masters);
  });
  spec.mesh = {};
  on_every_rank(spec, [&](Trainer& trainer) {
    trainer.load(path("saved"));
    collect(trainer, loaded, Held::Masters);
  });
  EXPECT_TRUE(same_bits(loaded, saved));
}

}  // namespace
}  // namespace braid::train::shared_key_heads_test
