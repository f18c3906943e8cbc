// Sequence parallelism: tensor ranks split the tokens between their products. They train the model of one rank, and
// checkpoints do not depend on it.
#include <gtest/gtest.h>

#include <mutex>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::sequence_parallel_test {
namespace {

RunSpec gpt2() {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.layers = 4;
  spec.model.context = 12;
  spec.train.steps = 2;
  spec.train.microbatch = 2;
  spec.optimizer.clip_norm = 0.1;  // clips, so every weight depends on the norm of all gradients
  spec.data.paths = {"text"};      // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

// Rotary positions, and fewer key heads than the ranks of some layouts.
RunSpec llama() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Llama;
  spec.model.kv_heads = 2;
  spec.model.ffn = 24;
  spec.model.qkv_bias = true;
  spec.model.qk_norm = true;
  return spec;
}

// Norms behind the residuals, and a head that picks tokens.
RunSpec bert() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Bert;
  return spec;
}

// Norms behind the branches too.
RunSpec gemma2() {
  RunSpec spec = llama();
  spec.model.family = ModelFamily::Gemma2;
  spec.model.qkv_bias = spec.model.qk_norm = false;
  spec.model.head_width = 4;
  spec.model.window = 4;
  spec.model.attention_cap = 50;
  spec.model.logit_cap = 30;
  return spec;
}

struct Layout {
  const char* name;
  RunSpec (*model)();
  MeshSpec mesh;
  void (*model_change)(RunSpec& spec);  // also of the run on one rank
  void (*layout_change)(RunSpec& spec);
};

void nothing(RunSpec&) {}
void drops(RunSpec& spec) { spec.model.dropout = 0.3; }
void documents(RunSpec& spec) { spec.data.attention = AttentionMask::Document; }

const std::vector<Layout> kLayouts = {
    {"gpt2", gpt2, {.tensor = 2}, nothing, nothing},
    {"gpt2 with dropout", gpt2, {.tensor = 4}, drops, nothing},
    {"llama", llama, {.tensor = 2}, drops, nothing},
    {"llama, two ranks for each key head", llama, {.tensor = 4}, nothing, nothing},
    {"bert", bert, {.tensor = 2}, drops, nothing},
    {"gemma2", gemma2, {.tensor = 2}, nothing, nothing},
    {"documents", llama, {.data = 2, .tensor = 2}, documents, nothing},
    {"1f1b", gpt2, {.pipe = 2, .tensor = 2}, drops, [](RunSpec& spec) { spec.pipeline.schedule = "1f1b"; }},
    {"zero bubble", llama, {.pipe = 2, .tensor = 2}, nothing, [](RunSpec& spec) { spec.pipeline.schedule = "zb-h1"; }},
    {"zero bubble of bert",
     bert,
     {.pipe = 2, .tensor = 2},
     nothing,
     [](RunSpec& spec) { spec.pipeline.schedule = "zb-h1"; }},
    {"V-shaped", gemma2, {.pipe = 2, .tensor = 2}, nothing, [](RunSpec& spec) { spec.pipeline.schedule = "zb-v"; }},
    {"both directions",
     gpt2,
     {.pipe = 2, .tensor = 2},
     nothing,
     [](RunSpec& spec) { spec.pipeline.schedule = "dualpipe"; }},
    {"within a layer",
     gpt2,
     {.pipe = 2, .tensor = 2},
     drops,
     [](RunSpec& spec) { spec.pipeline.partition = "1.5,2.5"; }},
    {"zero 1", gpt2, {.data = 2, .tensor = 2}, nothing, [](RunSpec& spec) { spec.sync.zero = 1; }},
    {"zero 2", llama, {.data = 2, .tensor = 2}, nothing, [](RunSpec& spec) { spec.sync.zero = 2; }},
    {"zero 3", bert, {.data = 2, .tensor = 2}, nothing, [](RunSpec& spec) { spec.sync.zero = 3; }},
    {"full recompute", gpt2, {.tensor = 2}, drops, [](RunSpec& spec) { spec.memory.recompute = "full"; }},
    {"selective recompute", llama, {.tensor = 4}, drops, [](RunSpec& spec) { spec.memory.recompute = "selective"; }},
    {"selective recompute of bert",
     bert,
     {.tensor = 2},
     drops,
     [](RunSpec& spec) { spec.memory.recompute = "selective"; }},
    {"reproducible",
     llama,
     {.tensor = 4},
     nothing,
     [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {"muon", gpt2, {.tensor = 2}, [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; }, nothing},
};

TEST(SequenceParallel, TrainsTheModelOfOneRank) {
  for (const Layout& layout : sampled(kLayouts, 3)) {
    SCOPED_TRACE(cat(layout.name, ", tensor ", layout.mesh.tensor));
    RunSpec spec = layout.model();
    layout.model_change(spec);
    const LayoutResult want = train_layout(spec);
    spec.mesh = layout.mesh;
    spec.mesh.sequence_parallel = true;
    layout.layout_change(spec);
    const LayoutResult got = train_layout(spec);
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (size_t step = 0; step < want.losses.size(); ++step) {
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-12);
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-12);
    }
    EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), 1e-12);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-8);
  }
}

TEST(SequenceParallel, EvaluatesTheModelOfOneRank) {
  for (RunSpec spec : {gpt2(), bert()}) {
    double want = 0;
    on_every_rank(spec, [&](Trainer& trainer) { want = trainer.evaluate(); });
    spec.mesh = {.pipe = 2, .tensor = 2, .sequence_parallel = true};
    on_every_rank(spec, [&](Trainer& trainer) { EXPECT_NEAR(trainer.evaluate(), want, 1e-12); });
  }
}

// Parts are summed for each microbatch, so data and pipeline layouts of one tensor size have the same bits.
TEST(SequenceParallel, DataAndPipelineLayoutsGiveTheSameBits) {
  RunSpec spec = llama();
  spec.model.dropout = 0.3;
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  spec.mesh = {.tensor = 4, .sequence_parallel = true};
  const LayoutResult want = train_layout(spec);
  for (const MeshSpec& mesh : {MeshSpec{.data = 2, .tensor = 4}, MeshSpec{.pipe = 2, .tensor = 4}}) {
    spec.mesh = mesh;
    spec.mesh.sequence_parallel = true;
    spec.sync.zero = mesh.data == 2 ? 2 : 0;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses) << "pipe " << mesh.pipe << ", data " << mesh.data;
    EXPECT_EQ(got.grad_norms, want.grad_norms) << "pipe " << mesh.pipe << ", data " << mesh.data;
    EXPECT_TRUE(same_bits(got.params, want.params)) << "pipe " << mesh.pipe << ", data " << mesh.data;
  }
}

// Every rank has the sum of the parts, with masters of 16-bit weights too.
TEST(SequenceParallel, CopiesStayEqual) {
  for (const DType type : {DType::Float32, DType::BFloat16}) {
    RunSpec spec = gpt2();
    spec.train.dtype = type;
    spec.mesh = {.data = 2, .tensor = 2, .sequence_parallel = true};
    on_every_rank(spec, [](Trainer& trainer) {
      trainer.step();
      trainer.step();
      EXPECT_TRUE(trainer.check_replicas());
    });
  }
}

class SequenceParallelCheckpoint : public ScratchFolder {};

// A run that goes on without sequence parallelism, and one that goes on with it, end as the whole run does.
TEST_F(SequenceParallelCheckpoint, ResumesWithAndWithoutIt) {
  RunSpec spec = gpt2();
  std::map<std::string, at::Tensor> saved, resumed;
  std::mutex lock;
  const auto trained = [&](bool splits, const char* from, std::map<std::string, at::Tensor>& params) {
    spec.mesh = {.tensor = 2, .sequence_parallel = splits};
    params.clear();
    on_every_rank(spec, [&](Trainer& trainer) {
      if (*from != 0) trainer.load(path(from));
      trainer.step();
      if (*from == 0) trainer.save(path(splits ? "split" : "whole"), "");
      if (*from == 0) trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Masters);
    });
  };
  trained(true, "", saved);
  trained(false, "split", resumed);
  EXPECT_LT(largest_difference(resumed, saved), 1e-9);
  trained(false, "", saved);
  trained(true, "whole", resumed);
  EXPECT_LT(largest_difference(resumed, saved), 1e-9);
}

}  // namespace
}  // namespace braid::train::sequence_parallel_test
