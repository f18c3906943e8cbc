// Context parallelism: ranks have parts of each sequence. They train the model of one rank, and checkpoints do not
// depend on it.
#include <gtest/gtest.h>

#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/token_parts.h"

namespace braid::train::context_parallel_test {
namespace {

using namespace token_parts;

// Six heads, of which two share a key head.
RunSpec three_key_heads() {
  RunSpec spec = llama();
  spec.model.heads = 6;
  spec.model.width = 24;
  spec.model.kv_heads = 3;
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
    {"gemma2 in a ring with documents", gemma2, {.context = 4, .context_parallel = kRing}, documents, nothing},
    {"gemma2 and all-gather", gemma2, {.context = 2, .context_parallel = kAllGather}, drops, nothing},
    {"gemma2 in rings of exchanges", gemma2, {.context = 4, .context_parallel = kUlyssesRing}, documents, nothing},
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
    expect_training_of_one_rank(layout);
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
  spec.mesh = {.context = 2};
  spec.sync.zero = 1;
  const auto want = masters_after(spec, From::Start, path("saved"));
  spec.sync.zero = 0;
  for (const int ranks : {1, 4}) {
    spec.mesh = {.context = ranks};
    EXPECT_LT(largest_difference(masters_after(spec, From::Checkpoint, path("saved")), want), 1e-9)
        << ranks << " ranks";
  }
}

}  // namespace
}  // namespace braid::train::context_parallel_test
