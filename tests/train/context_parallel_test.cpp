// Context parallelism: ranks have parts of each sequence. They train the model of one rank, and checkpoints do not
// depend on it.
#include <gtest/gtest.h>

#include <mutex>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::context_parallel_test {
namespace {

RunSpec gpt2() {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.layers = 4;
  spec.model.context = 24;
  spec.train.steps = 2;
  spec.train.microbatch = 2;
  spec.optimizer.clip_norm = 0.1;  // clips, so every weight depends on the norm of all gradients
  spec.data.paths = {"text"};      // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

// Rotary positions, and key heads that query heads share.
RunSpec llama() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Llama;
  spec.model.kv_heads = 2;
  spec.model.ffn = 24;
  spec.model.qkv_bias = true;
  spec.model.qk_norm = true;
  spec.model.rope_scaling = RopeScaling::Dynamic;
  spec.model.rope_context = 8;
  return spec;
}

// Six heads, of which two share a key head.
RunSpec three_key_heads() {
  RunSpec spec = llama();
  spec.model.heads = 6;
  spec.model.width = 24;
  spec.model.kv_heads = 3;
  return spec;
}

// Attention both ways, and a head that picks tokens.
RunSpec bert() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Bert;
  return spec;
}

RunSpec gemma2() {
  RunSpec spec = llama();
  spec.model.family = ModelFamily::Gemma2;
  spec.model.qkv_bias = spec.model.qk_norm = false;
  spec.model.rope_scaling = RopeScaling::None;
  spec.model.head_width = 4;
  spec.model.window = 4;
  spec.model.attention_cap = 50;
  spec.model.logit_cap = 30;
  return spec;
}

RunSpec window() {
  RunSpec spec = llama();
  spec.model.window = 5;
  return spec;
}

constexpr auto kRing = ContextParallel::Ring;
constexpr auto kAllGather = ContextParallel::AllGather;
constexpr auto kUlysses = ContextParallel::Ulysses;
constexpr auto kUlyssesRing = ContextParallel::UlyssesRing;

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
    {"ring", gpt2, {.context = 2, .context_parallel = kRing}, nothing, nothing},
    {"ring of four with documents", llama, {.context = 4, .context_parallel = kRing}, documents, nothing},
    {"ulysses, three key heads on two ranks",
     three_key_heads,
     {.context = 2, .context_parallel = kUlysses},
     documents,
     nothing},
    {"ulysses", gpt2, {.context = 2, .context_parallel = kUlysses}, nothing, nothing},
    {"ring of four with dropout", gpt2, {.context = 4, .context_parallel = kRing}, drops, nothing},
    {"ring of three", llama, {.context = 3, .context_parallel = kRing}, nothing, nothing},
    {"ring with documents", gpt2, {.data = 2, .context = 2, .context_parallel = kRing}, documents, nothing},
    {"ulysses with documents", llama, {.context = 2, .context_parallel = kUlysses}, documents, nothing},
    {"ulysses, ranks without heads", llama, {.context = 4, .context_parallel = kUlysses}, drops, nothing},
    {"bert", bert, {.context = 2, .context_parallel = kRing}, drops, nothing},
    {"bert, ulysses", bert, {.context = 4, .context_parallel = kUlysses}, nothing, nothing},
    {"gemma2", gemma2, {.context = 2, .context_parallel = kUlysses}, nothing, nothing},
    {"window", window, {.context = 3, .context_parallel = kUlysses}, documents, nothing},
    {"window in a ring", window, {.context = 3, .context_parallel = kRing}, nothing, nothing},
    {"window in a ring with documents", window, {.context = 4, .context_parallel = kRing}, documents, nothing},
    {"all-gather with documents", llama, {.context = 2, .context_parallel = kAllGather}, documents, nothing},
    {"all-gather of four", bert, {.context = 4, .context_parallel = kAllGather}, drops, nothing},
    {"window and all-gather", window, {.context = 2, .context_parallel = kAllGather}, nothing, nothing},
    {"rings of exchanges", llama, {.context = 4, .context_parallel = kUlyssesRing}, documents, nothing},
    {"rings of exchanges of uneven heads",
     three_key_heads,
     {.context = 4, .context_parallel = kUlyssesRing, .ulysses_ranks = 2},
     nothing,
     nothing},
    {"window and rings of exchanges", window, {.context = 4, .context_parallel = kUlyssesRing}, documents, nothing},
    {"tensor ranks", llama, {.context = 2, .tensor = 2, .context_parallel = kRing}, drops, nothing},
    {"tensor ranks that share key heads",
     llama,
     {.context = 2, .tensor = 4, .context_parallel = kUlysses},
     nothing,
     nothing},
    {"sequence parallelism",
     gpt2,
     {.context = 2, .tensor = 2, .context_parallel = kRing, .sequence_parallel = true},
     drops,
     nothing},
    {"sequence parallelism of bert",
     bert,
     {.context = 2, .tensor = 2, .context_parallel = kUlysses, .sequence_parallel = true},
     drops,
     nothing},
    {"1f1b",
     gpt2,
     {.pipe = 2, .context = 2, .context_parallel = kRing},
     drops,
     [](RunSpec& spec) { spec.pipeline.schedule = "1f1b"; }},
    {"zero bubble",
     llama,
     {.pipe = 2, .context = 2, .context_parallel = kUlysses},
     nothing,
     [](RunSpec& spec) { spec.pipeline.schedule = "zb-h1"; }},
    {"V-shaped",
     llama,
     {.pipe = 2, .context = 2, .context_parallel = kRing},
     documents,
     [](RunSpec& spec) { spec.pipeline.schedule = "zb-v"; }},
    {"both directions",
     gpt2,
     {.pipe = 2, .context = 2, .context_parallel = kRing},
     nothing,
     [](RunSpec& spec) { spec.pipeline.schedule = "dualpipe"; }},
    {"zero 1", gpt2, {.context = 2, .context_parallel = kRing}, nothing, [](RunSpec& spec) { spec.sync.zero = 1; }},
    {"zero 2",
     llama,
     {.data = 2, .context = 2, .context_parallel = kRing},
     nothing,
     [](RunSpec& spec) { spec.sync.zero = 2; }},
    {"zero 3",
     bert,
     {.data = 2, .context = 2, .context_parallel = kUlysses},
     nothing,
     [](RunSpec& spec) { spec.sync.zero = 3; }},
    {"zero 3 in groups",
     gpt2,
     {.data = 2, .context = 2, .context_parallel = kRing},
     nothing,
     [](RunSpec& spec) { spec.sync.zero = 3, spec.sync.zero_group = 1; }},
    {"full recompute",
     gpt2,
     {.context = 2, .context_parallel = kRing},
     drops,
     [](RunSpec& spec) { spec.memory.recompute = "full"; }},
    {"selective recompute",
     llama,
     {.context = 2, .context_parallel = kRing},
     drops,
     [](RunSpec& spec) { spec.memory.recompute = "selective"; }},
    {"selective recompute, ulysses",
     llama,
     {.context = 2, .context_parallel = kUlysses},
     drops,
     [](RunSpec& spec) { spec.memory.recompute = "selective"; }},
    {"reproducible",
     llama,
     {.data = 2, .context = 2, .context_parallel = kRing},
     nothing,
     [](RunSpec& spec) { spec.train.reduction = Reduction::Reproducible; }},
    {"muon",
     gpt2,
     {.context = 2, .context_parallel = kRing},
     [](RunSpec& spec) { spec.optimizer.kind = OptimizerKind::Muon; },
     nothing},
    {"frozen blocks",
     gpt2,
     {.pipe = 2, .context = 2, .context_parallel = kRing},
     [](RunSpec& spec) { spec.optimizer.groups = {{.match = "blocks.[01].*", .frozen = true}}; },
     nothing},
};

TEST(ContextParallel, TrainsTheModelOfOneRank) {
  for (const Layout& layout : sampled(kLayouts, 3)) {
    SCOPED_TRACE(layout.name);
    RunSpec spec = layout.model();
    layout.model_change(spec);
    const LayoutResult want = train_layout(spec);
    spec.mesh = layout.mesh;
    layout.layout_change(spec);
    const LayoutResult got = train_layout(spec);
    ASSERT_EQ(got.losses.size(), want.losses.size());
    for (size_t step = 0; step < want.losses.size(); ++step) {
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-12);
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-12);
    }
    EXPECT_EQ(got.sample_hashes, want.sample_hashes);
    EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), 1e-12);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-8);
  }
}

TEST(ContextParallel, EvaluatesTheModelOfOneRank) {
  for (RunSpec spec : {gpt2(), bert()}) {
    spec.train.eval_sequences = 5;  // not a multiple of the microbatch
    double want = 0;
    on_every_rank(spec, [&](Trainer& trainer) { want = trainer.evaluate(); });
    spec.mesh = {.pipe = 2, .context = 2};
    on_every_rank(spec, [&](Trainer& trainer) { EXPECT_NEAR(trainer.evaluate(), want, 1e-12); });
  }
}

// Data and pipeline layouts of one context size have the same bits.
TEST(ContextParallel, DataAndPipelineLayoutsGiveTheSameBits) {
  RunSpec spec = llama();
  spec.train.dtype = DType::Float32;
  spec.train.reduction = Reduction::Reproducible;
  spec.mesh = {.context = 2};
  const LayoutResult want = train_layout(spec);
  for (const MeshSpec& mesh : {MeshSpec{.data = 2, .context = 2}, MeshSpec{.pipe = 2, .context = 2}}) {
    spec.mesh = mesh;
    const LayoutResult got = train_layout(spec);
    EXPECT_EQ(got.losses, want.losses) << "pipe " << mesh.pipe << ", data " << mesh.data;
    EXPECT_TRUE(same_bits(got.params, want.params)) << "pipe " << mesh.pipe << ", data " << mesh.data;
  }
}

TEST(ContextParallel, SixteenBitWeightsStayEqual) {
  RunSpec spec = llama();
  spec.train.dtype = DType::BFloat16;
  const LayoutResult want = train_layout(spec);
  for (const ContextParallel form : {kRing, kUlysses}) {
    spec.mesh = {.context = 2, .context_parallel = form};
    const LayoutResult got = train_layout(spec);
    EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), rounding_of(DType::BFloat16).gradients);
    on_every_rank(spec, [](Trainer& trainer) {
      trainer.step();
      EXPECT_TRUE(trainer.check_replicas());
    });
  }
}

class ContextParallelCheckpoint : public ScratchFolder {};

// A run that goes on with another number of context ranks ends as the whole run does.
TEST_F(ContextParallelCheckpoint, ResumesOnAnotherNumberOfRanks) {
  RunSpec spec = gpt2();
  std::map<std::string, at::Tensor> saved, resumed;
  std::mutex lock;
  const auto trained = [&](int ranks, const char* from, std::map<std::string, at::Tensor>& params) {
    spec.mesh = {.context = ranks};
    spec.sync.zero = ranks == 2 ? 1 : 0;
    params.clear();
    on_every_rank(spec, [&](Trainer& trainer) {
      if (*from != 0) trainer.load(path(from));
      trainer.step();
      if (*from == 0) trainer.save(path("saved"), "");
      if (*from == 0) trainer.step();
      const std::scoped_lock hold(lock);
      collect(trainer, params, Held::Masters);
    });
  };
  trained(2, "", saved);
  for (const int ranks : {1, 4}) {
    trained(ranks, "saved", resumed);
    EXPECT_LT(largest_difference(resumed, saved), 1e-9) << ranks << " ranks";
  }
}

}  // namespace
}  // namespace braid::train::context_parallel_test
