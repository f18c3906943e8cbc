// Small runs keep what a layout depends on, and have no problems.
#include "braid/verify/shrunk_run.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "braid/base/errors.h"
#include "braid/model/preset.h"
#include "braid/model/shape.h"
#include "braid/spec/problems.h"
#include "braid/verify/all_layouts.h"
#include "tests/verify/small_run.h"

namespace braid::verify::shrunk_run_test {
namespace {

RunSpec large_run() {
  RunSpec run;
  run.model.family = ModelFamily::Llama;
  run.model.layers = 80;
  run.model.heads = 64;
  run.model.kv_heads = 8;
  run.model.width = 8192;
  run.model.ffn = 28672;
  run.model.context = 4096;
  run.model.vocab = 128256;
  run.train.batch = 1024;
  run.train.microbatch = 1;
  return run;
}

void expect_legal(const RunSpec& run) {
  for (const Problem& problem : spec::problems(run, spec::any_hosts())) ADD_FAILURE() << text(problem);
}

TEST(ShrunkRun, HasTheLayoutAndFewParameters) {
  RunSpec run = large_run();
  run.mesh = {.pipe = 8, .data = 4, .tensor = 8, .sequence_parallel = true};
  run.pipeline.schedule = "interleaved";
  run.pipeline.chunks = 5;
  run.sync.zero = 1;
  run.train.dtype = DType::BFloat16;
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.mesh, run.mesh);
  EXPECT_EQ(small.pipeline, run.pipeline);
  EXPECT_EQ(small.train.dtype, run.train.dtype);
  EXPECT_EQ(small.model.layers, 80);
  EXPECT_EQ(small.model.heads % 8, 0);
  EXPECT_LE(small.model.width, 128);
  EXPECT_LE(small.model.context, 16);
  EXPECT_LE(small.train.batch, 4 * 16);
}

TEST(ShrunkRun, KeepsLayersThatGroupsNameAndSomethingToTrain) {
  RunSpec run = large_run();
  run.optimizer.groups = {{.match = "blocks.11.*"}, {.match = "*", .frozen = true}};
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.model.layers, 12);
  EXPECT_EQ(small.optimizer.groups, run.optimizer.groups);
}

TEST(ShrunkRun, KeepsSharedKeyHeads) {
  RunSpec run = large_run();
  EXPECT_EQ(shrunk(run).model.heads, 2 * shrunk(run).model.kv_heads);
  run.mesh.tensor = 16;  // two ranks for each key head
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.model.kv_heads, 8);
  EXPECT_EQ(small.model.heads, 16);
}

TEST(ShrunkRun, KeepsSegmentsOfRecomputation) {
  RunSpec run = large_run();
  run.mesh.pipe = 2;
  run.memory.recompute = "every:3";
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.memory, run.memory);
  EXPECT_EQ(small.model.layers, 8);  // a whole segment and a part of one on each stage
}

TEST(ShrunkRun, KeepsLayersThatAPartitionLists) {
  RunSpec run = large_run();
  run.model.layers = 10;
  run.mesh.pipe = 2;
  run.pipeline.partition = "4.5,5.5";
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.model.layers, 10);
}

TEST(ShrunkRun, KeepsUnequalShares) {
  RunSpec run = large_run();
  run.mesh.data = 2;
  run.mesh.batch_shares = "3,1";
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.mesh, run.mesh);
  EXPECT_EQ(small.train.batch / small.train.microbatch, 8);  // six and two
}

TEST(SyntheticCorpus, HasDocumentsForAllSteps) {
  const RunSpec run = small_run();
  const data::Corpus corpus = synthetic_corpus(run, 3);
  EXPECT_GE(data::num_tokens(corpus.train), int64_t{3} * run.train.batch * run.model.context);
  EXPECT_GT(corpus.num_documents, 10);
  EXPECT_TRUE(corpus.validation.empty());
}

TEST(ShrunkRun, KeepsPartsOfSequences) {
  RunSpec run = large_run();
  run.mesh = {.context = 8, .tensor = 2, .sequence_parallel = true};
  const RunSpec small = shrunk(run);
  expect_legal(small);
  EXPECT_EQ(small.mesh, run.mesh);
  EXPECT_EQ(small.model.context, 32);
}

TEST(AllLayouts, HaveEveryFormOfContextParallelism) {
  std::set<std::pair<ContextParallel, int>> forms;
  for (const RunSpec& run : all_layouts(large_run(), 4, RunSize::Shrunk)) {
    if (run.mesh.context > 1) forms.emplace(run.mesh.context_parallel, run.mesh.ulysses_ranks);
  }
  EXPECT_EQ(forms, (std::set<std::pair<ContextParallel, int>>{{ContextParallel::Ring, 0},
                                                              {ContextParallel::AllGather, 0},
                                                              {ContextParallel::Ulysses, 0},
                                                              {ContextParallel::UlyssesRing, 2}}));
}

TEST(AllLayouts, AreLegalAndDifferent) {
  const std::vector<RunSpec> all = all_layouts(large_run(), 4, RunSize::Shrunk);
  EXPECT_GT(all.size(), 40u);
  for (size_t i = 0; i < all.size(); ++i) {
    expect_legal(all[i]);
    EXPECT_EQ(num_ranks(all[i].mesh), 4);
    for (size_t j = 0; j < i; ++j) EXPECT_FALSE(all[i] == all[j]);
  }
}

}  // namespace
}  // namespace braid::verify::shrunk_run_test
