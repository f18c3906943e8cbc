// Sequence parallelism: tensor ranks split the tokens between their products. They train the model of one rank, and
// checkpoints do not depend on it.
#include <gtest/gtest.h>

#include <filesystem>
#include <utility>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/token_parts.h"

namespace braid::train::sequence_parallel_test {
namespace {

using namespace token_parts;

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
  for (Layout layout : sampled(kLayouts, 3)) {
    SCOPED_TRACE(cat(layout.name, ", tensor ", layout.mesh.tensor));
    layout.mesh.sequence_parallel = true;
    expect_training_of_one_rank(layout);
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
  RunSpec split = gpt2(), whole = gpt2();
  split.mesh = {.tensor = 2, .sequence_parallel = true};
  whole.mesh = {.tensor = 2};
  for (const auto& [before, after] : {std::pair(split, whole), std::pair(whole, split)}) {
    const auto want = masters_after(before, From::Start, path("saved"));
    EXPECT_LT(largest_difference(masters_after(after, From::Checkpoint, path("saved")), want), 1e-9);
    std::filesystem::remove_all(path("saved"));
  }
}

}  // namespace
}  // namespace braid::train::sequence_parallel_test
