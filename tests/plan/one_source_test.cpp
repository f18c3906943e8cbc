// A model is described once: a changed row of the op table, or a changed line of a family, reaches all that is read
// from the graph.
#include <gtest/gtest.h>

#include <algorithm>

#include "braid/layout/listing.h"
#include "braid/layout/parameters.h"
#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/model/op_table.h"
#include "braid/plan/predict_run.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::one_source_test {
namespace {

using model::OpKind;

RunSpec run_of_gpt2() {
  RunSpec run;
  run.model = {.layers = 2, .heads = 4, .width = 32, .context = 16, .vocab = 64};
  run.train.batch = run.train.microbatch = 1;
  return run;
}

// The answers of all readers of a graph.
struct Answers {
  int64_t parameters;
  double flops, kept;                // the account's, of the attention half of a layer
  double listed_kept;                // those of all ops of a layer that `braid model` lists
  size_t listed_ops;                 // in a layer
  size_t laid_out;                   // parameters of a layer on a rank
  double step_seconds, activations;  // predicted
};

Answers answers(const model::ModelGraph& graph) {
  const RunSpec run = run_of_gpt2();
  const auto account = std::make_shared<const layout::ModelAccount>(layout::account_of(run.model, graph));
  const layout::SharingRanks ranks{.tokens = 16};
  const layout::RankExtents rank = layout::rank_extents(*account, ranks);
  Answers all{};
  all.parameters = layout::count_params(run.model, graph);
  all.flops = account->flops_per_token;
  all.kept = account->parts[0].everything.elements.at(rank) + account->parts[1].everything.elements.at(rank);
  for (const layout::ListedOp& op : layout::listing_of(run.model, graph, ranks).ops) {
    if (op.block != "blocks.0") continue;
    all.listed_kept += op.kept_elements;
    ++all.listed_ops;
  }
  all.laid_out = layout::model_params(run.model, graph, {0, 2, mesh::Axis::Tensor})[1].params.size();
  const Prediction predicted = predict_run(run, a100_nodes(1), {.account = account});
  all.step_seconds = predicted.step_seconds();
  all.activations = predicted.fullest().activations;
  return all;
}

// The graph with another row for the ops of a kind.
model::ModelGraph with_row(OpKind kind, const model::OpRow& row) {
  model::ModelGraph graph = model::graph_of(run_of_gpt2().model);
  for (model::BlockGraph& block : graph.kinds) {
    for (model::Op& op : block.ops) {
      if (op.kind == kind) op.row = &row;
    }
  }
  return graph;
}

const Answers& unchanged() {
  static const Answers kAnswers = answers(model::graph_of(run_of_gpt2().model));
  return kAnswers;
}

TEST(OneSource, ALinearMapThatKeepsNoInput) {
  model::OpRow row = model::row_of(OpKind::Linear);
  row.keeps = model::KeepsInput::No;
  const Answers changed = answers(with_row(OpKind::Linear, row));
  // Two norms' outputs, attention's output and the activation's: h, h, h and 4 h.
  const double inputs = 16 * 7 * 32;
  EXPECT_EQ(unchanged().kept - changed.kept, inputs);
  EXPECT_EQ(unchanged().listed_kept - changed.listed_kept, inputs);
  EXPECT_EQ(unchanged().activations - changed.activations, 2 * 4 * inputs);
  EXPECT_EQ(unchanged().parameters, changed.parameters);
}

TEST(OneSource, ANormThatMultiplies) {
  model::OpRow row = model::row_of(OpKind::LayerNorm);
  row.flops = [](const model::OpAt& at) { return 1000 * model::Terms(at.out()); };
  row.traffic = [](const model::OpAt& at) { return model::Traffic{1000 * model::Terms(at.out()), {}}; };
  const Answers changed = answers(with_row(OpKind::LayerNorm, row));
  EXPECT_EQ(changed.flops - unchanged().flops, 3 * 1000 * 32 * 5) << "forward and backward of five norms";
  EXPECT_GT(changed.step_seconds, unchanged().step_seconds);
  EXPECT_EQ(changed.listed_kept, unchanged().listed_kept);
}

TEST(OneSource, AFamilyWithoutItsSecondNorm) {
  const RunSpec run = run_of_gpt2();
  model::FamilyBlocks blocks = model::family_of(run.model).blocks;
  blocks.layer = [](const ModelSpec& spec) {
    model::BlockBuilder block(spec, "btc");
    block.norm(OpKind::LayerNorm, "ln_1").linear("attention.qkv", "[kmd|kd|kd]").bias().attention();
    block.linear("attention.projection", "c").bias().join().cut();
    return block.linear("mlp.up", "f").bias().apply(OpKind::Gelu).linear("mlp.down", "c").bias().join().build();
  };
  const Answers changed = answers(model::graph_of(run.model, blocks));
  EXPECT_EQ(unchanged().parameters - changed.parameters, 2 * 2 * 32);
  EXPECT_EQ(unchanged().laid_out - changed.laid_out, 2u);
  EXPECT_EQ(unchanged().listed_ops - changed.listed_ops, 1u);
  const double output = 16 * 32;  // the product keeps the hidden state, which the norm kept
  EXPECT_EQ(unchanged().kept - changed.kept, output);
  EXPECT_EQ(unchanged().listed_kept - changed.listed_kept, output);
  EXPECT_EQ(unchanged().activations - changed.activations, 2 * 4 * (output + 2 * 16));
  EXPECT_LT(changed.step_seconds, unchanged().step_seconds);
}

}  // namespace
}  // namespace braid::plan::one_source_test
