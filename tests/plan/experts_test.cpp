// A mixture of experts against its authors' figures and counts made by hand.
#include <gtest/gtest.h>

#include "braid/model/model_flops.h"
#include "braid/plan/block_work.h"
#include "braid/plan/braid_memory.h"
#include "braid/plan/data_exchange.h"
#include "braid/plan/predict_run.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::experts_test {
namespace {

// Jiang et al., "Mixtral of Experts" (2024), table 1.
RunSpec mixtral() {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama,
               .layers = 32,
               .heads = 32,
               .kv_heads = 8,
               .width = 4096,
               .ffn = 14336,
               .experts = 8,
               .experts_per_token = 2,
               .context = 4096,
               .vocab = 32000,
               .output_weights = OutputWeights::Untied};
  run.train.batch = 64;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  return run;
}

// 4 x 64 (heads) with branches of 128 features, so that all sizes are multiples of what parameters are aligned to.
RunSpec small() {
  RunSpec run;
  run.model = {.family = ModelFamily::Llama,
               .layers = 2,
               .heads = 4,
               .width = 1024,
               .ffn = 128,
               .experts = 8,
               .experts_per_token = 2,
               .context = 256,
               .vocab = 1024,
               .output_weights = OutputWeights::Untied};
  run.train.batch = 16;
  run.train.microbatch = 1;
  run.train.dtype = DType::BFloat16;
  return run;
}

StageParameters parameters(const RunSpec& run) {
  const RunLayout layout = layout_of(run, a100_nodes(8), FormulaSet::Braid);
  return stage_parameters(run, layout, layout.stages[0]);
}

TEST(Experts, MixtralHasAsManyParametersAsItsAuthorsSay) {
  RunSpec run = mixtral();
  EXPECT_NEAR(parameters(run).count() / 46.7e9, 1, 0.01);
  // Active: 6 operations for each, but for attention's and with the embedding, which makes none.
  const double attention = 12.0 * 32 * 4096 * 2048;
  const double active = (model::model_flops_per_token(run.model) - attention) / 6 + 32000.0 * 4096;
  EXPECT_NEAR(active / 12.9e9, 1, 0.01);
}

// h = 1024, f = 128: each expert 3 h f, the router 8 h, attention 4 h^2, two norms; two tables and the last norm.
constexpr double kH = 1024, kExpert = 3 * 1024 * 128, kBlock = 4 * kH * kH + 2 * kH + 8 * kH;
constexpr double kShared = 2 * kBlock + 2 * 1024 * kH + kH;

TEST(Experts, BytesOfARankByHand) {
  RunSpec run = small();
  run.mesh = {.data = 2, .expert = 4};
  const RankMemory whole = predict_run(run, a100_nodes(1)).memory[0];
  const double held = kShared + 2 * 2 * kExpert;  // two of eight experts in each of two blocks
  EXPECT_EQ(static_cast<double>(whole.parameters), 2 * held);
  EXPECT_EQ(static_cast<double>(whole.gradients), 4 * held);
  EXPECT_EQ(static_cast<double>(whole.moments), 12 * held);
  // The rest is sharded over all eight ranks, experts by the two that hold copies of them.
  run.sync.zero = 1;
  const RankMemory shared = predict_run(run, a100_nodes(1)).memory[0];
  EXPECT_EQ(static_cast<double>(shared.moments), 12 * (kShared / 8 + 4 * kExpert / 2));
  run.mesh.tensor = 2;
  run.sync.zero = 0;
  EXPECT_EQ(parameters(run).experts.count, 4 * kExpert / 2);
}

TEST(Experts, MoreRanksNeverHoldMoreOfThem) {
  RunSpec run = mixtral();
  double before = 1e18;
  for (const int ranks : {1, 2, 4, 8}) {
    run.mesh.expert = ranks;
    const StageParameters found = parameters(run);
    EXPECT_LT(found.experts.count, before);
    EXPECT_EQ(found.experts.count * ranks, 32 * 8 * 3 * 4096.0 * 14336);
    before = found.experts.count;
  }
}

// Gradients: of the rest over all eight ranks, of experts over the two that hold copies; 4 bytes each.
TEST(Experts, AreSummedWhereTheirCopiesAre) {
  RunSpec run = small();
  run.mesh = {.data = 2, .expert = 4};
  EXPECT_EQ(predict_run(run, a100_nodes(1)).sync_bytes, 2 * 7 / 8.0 * 4 * kShared + 2 * 1 / 2.0 * 4 * 4 * kExpert);
  run.mesh = {.data = 1, .expert = 8};
  EXPECT_EQ(predict_run(run, a100_nodes(1)).sync_bytes, 2 * 7 / 8.0 * 4 * kShared) << "nobody has a copy of an expert";
}

// Two each way: e n k h bytes, of which a rank sends (r-1)/r.
TEST(Experts, TokensGoToThemAndComeBack) {
  RunSpec run = small();
  run.mesh.expert = 4;
  const RunLayout layout = layout_of(run, a100_nodes(1), FormulaSet::Braid);
  const PartWork work = part_work(run, layout, 1, FormulaSet::Braid);
  for (const PassWork& pass : {work.forward, work.input_grad}) {
    EXPECT_EQ(pass.routed_bytes, 2.0 * 256 * 2 * 1024);
    EXPECT_EQ(pass.num_routes, 2);
  }
  EXPECT_EQ(work.weight_grad.num_routes, 0);
  const Link link = a100_nodes(1).node;
  const double once = 3 * (link.latency_seconds + 2.0 * 256 * 2 * 1024 / 4 / link.bytes_per_second);
  const Prediction found = predict_run(run, a100_nodes(1));
  EXPECT_NEAR(found.seconds.context, 4 * 2 * 4 * once, 1e-12) << "four microbatches, two blocks, four routes";
  run.mesh.expert = 1;
  EXPECT_EQ(predict_run(run, a100_nodes(1)).seconds.context, 0);
}

// As many as tokens of all expert ranks, spread over all experts.
TEST(Experts, RowsOfTheirProducts) {
  RunSpec run = small();
  run.mesh.expert = 4;
  const RunLayout layout = layout_of(run, a100_nodes(1), FormulaSet::Braid);
  const auto& products = part_work(run, layout, 1, FormulaSet::Braid).forward.products;
  ASSERT_EQ(products.size(), 1u + 2 * 2);  // the router, and two of each of two experts
  EXPECT_EQ(products[0].flops, 2.0 * 256 * 1024 * 8);
  EXPECT_EQ(products[1].flops, 2.0 * (256 * 4 * 2 / 8) * 1024 * 2 * 128);
}

TEST(Experts, OneForAllTokensIsADenseBranchWithARouter) {
  RunSpec run = small();
  run.model.experts = run.model.experts_per_token = 1;
  RunSpec dense = run;
  dense.model.experts = 0;
  const double router = 2 * kH;  // of both blocks
  EXPECT_EQ(model::model_flops_per_token(run.model) - model::model_flops_per_token(dense.model), 6 * router);
  const RankMemory with = predict_run(run, a100_nodes(1)).memory[0],
                   without = predict_run(dense, a100_nodes(1)).memory[0];
  EXPECT_EQ(static_cast<double>(with.parameters - without.parameters), 2 * router);
  EXPECT_EQ(static_cast<double>(with.gradients - without.gradients), 4 * router);
  EXPECT_EQ(static_cast<double>(with.moments - without.moments), 12 * router);
  const auto products_of = [](const RunSpec& spec) {
    return part_work(spec, layout_of(spec, a100_nodes(1), FormulaSet::Braid), 1, FormulaSet::Braid).forward.products;
  };
  auto products = products_of(run);
  products.erase(products.begin());  // the router's
  const auto of_dense = products_of(dense);
  ASSERT_EQ(products.size(), of_dense.size());
  for (size_t i = 0; i < products.size(); ++i) {
    EXPECT_EQ(products[i].flops, of_dense[i].flops);
    EXPECT_EQ(products[i].bytes, of_dense[i].bytes);
  }
}

// A microbatch of 256 tokens and both blocks: the rows received and returned, the choice in float32, and as much of
// the branch for the second expert as for the first.
TEST(Experts, KeepTheirRows) {
  RunSpec run = small(), dense = run;
  dense.model.experts = 0;
  const auto kept = [](const RunSpec& spec) {
    const RunLayout layout = layout_of(spec, a100_nodes(1), FormulaSet::Braid);
    return kept_bytes({spec, layout}, layout.stages[0]);
  };
  const double rows = 2 * 2.0 * 256 * 2 * 1024, choice = 4.0 * 256 * 8, branch = 2.0 * 256 * 3 * 128;
  EXPECT_EQ(kept(run) - kept(dense), 2 * (rows + choice + branch));
  run.memory.recompute = dense.memory.recompute = "selective";  // all but the activation's output, of 128
  EXPECT_EQ(kept(run) - kept(dense), 2 * (rows + choice + branch * 2 / 3));
}

// Parameters with one copy are not sharded, and need no buffers.
TEST(Experts, NoBuffersAreForWhatNoRanksShare) {
  RunSpec run = small(), untouched = small();
  for (RunSpec* one : {&run, &untouched}) one->mesh.expert = 8;
  run.sync.zero = 3;
  const auto buffers = [&] { return predict_run(run, a100_nodes(8)).memory[0].communication; };
  const double attention = 4 * 1024 * 1024 + 2 * 1024, router = 8 * 1024, block = attention + router;
  const double ends = 2 * 1024 * 1024 + 1024;
  // Gradients of both blocks and both ends in float32, weights of two blocks in bfloat16, and the last block's output.
  const double output = 2.0 * 256 * 1024;
  EXPECT_EQ(buffers(), static_cast<int64_t>(4 * (2 * block + ends) + 2 * 2 * block + output));
  run.mesh = {.data = 8};
  run.sync.zero_group = 1;
  EXPECT_EQ(buffers(), 0);
}

}  // namespace
}  // namespace braid::plan::experts_test
