// Predictions of runs with frozen parameters.
#include <gtest/gtest.h>

#include "braid/plan/block_work.h"
#include "braid/plan/braid_memory.h"
#include "braid/plan/predict_run.h"
#include "braid/plan/stage_passes.h"
#include "tests/plan/a100_runs.h"

namespace braid::plan::frozen_test {
namespace {

RunSpec run_without(std::vector<std::string> patterns) {
  RunSpec run;
  run.model = {
      .layers = 8, .heads = 16, .width = 1024, .context = 256, .vocab = 4096, .output_weights = OutputWeights::Untied};
  run.mesh.pipe = 4;
  run.train.batch = 8;
  run.train.microbatch = 1;
  for (std::string& pattern : patterns) run.optimizer.groups.push_back({.match = std::move(pattern), .frozen = true});
  return run;
}

RunLayout layout_of(const RunSpec& run) { return layout_of(run, a100_nodes(1), FormulaSet::Braid); }
std::vector<StagePasses> passes_of(const RunSpec& run) {
  return stage_passes(run, layout_of(run), a100_nodes(1), FormulaSet::Braid);
}

// Stages have the layers 0 and 1, 2 and 3 and so on.
const RunSpec kRun = run_without({"w?e.*", "blocks.[0145].*"});

TEST(Frozen, StagesHaveThePassesThatTheyNeed) {
  using enum StageBackward;
  std::vector<StageBackward> backwards;
  for (const StageLoad& load : layout_of(kRun).stages) backwards.push_back(load.backward);
  EXPECT_EQ(backwards, (std::vector{Nothing, Whole, InputOnly, Whole}));
  const std::vector<StagePasses> passes = passes_of(kRun), whole = passes_of(run_without({}));
  for (size_t stage = 0; stage < 4; ++stage) EXPECT_EQ(passes[stage].forward, whole[stage].forward);
  EXPECT_EQ(passes[0].input_grad.total() + passes[0].weight_grad.total(), 0);
  EXPECT_EQ(passes[1], whole[1]);  // to the first norm, which is trained
  EXPECT_EQ(passes[2].input_grad, whole[2].input_grad);
  EXPECT_EQ(passes[2].weight_grad.total(), 0);
  EXPECT_EQ(passes[3], whole[3]);
}

TEST(Frozen, ParametersHaveWeightsOnly) {
  const RunLayout layout = layout_of(kRun);
  const StageParameters first = stage_parameters(kRun, layout, layout.stages[0]);
  const RunSpec trained = run_without({});
  const StageParameters whole = stage_parameters(trained, layout_of(trained), layout_of(trained).stages[0]);
  EXPECT_EQ(first.count(), 0);
  EXPECT_EQ(first.all(), whole.count());
  const StateBytes held = held_bytes(kRun, layout, FormulaSet::Braid, first);
  EXPECT_EQ(held.total(), held_bytes(trained, layout, FormulaSet::Braid, whole).weights);
  EXPECT_EQ(sharded(held, 1, 4).total(), held.total());
  EXPECT_EQ(sharded(held, 3, 4).total(), held.total() / 4);
}

TEST(Frozen, AnUntiedTableIsTrainedOrNotByItself) {
  for (const auto& [pattern, of_first, of_last] : {std::tuple("wte.*", 0.0, 1.0), {"head.*", 1.0, 0.0}}) {
    const RunSpec run = run_without({pattern});
    const PartParameters parts = part_parameters(run, layout_of(run));
    EXPECT_EQ(parts.tokens.count, of_first * 4096 * 1024);
    EXPECT_EQ(parts.table.count, of_last * 4096 * 1024);
  }
}

TEST(Frozen, NothingIsKeptThatNothingReads) {
  const RunSpec trained = run_without({});
  const RunLayout layout = layout_of(kRun), usual = layout_of(trained);
  const ActivationBytes tensors(kRun, layout), whole(trained, usual);
  EXPECT_EQ(kept_bytes(tensors, layout.stages[0]), 0);
  EXPECT_EQ(kept_bytes(tensors, layout.stages[1]), kept_bytes(whole, usual.stages[1]));
  // In each layer the inputs of three products are dropped: 1 + 1 + 4 widths. Attention keeps its output for itself.
  const double width = 4.0 * 256 * 1024;
  EXPECT_EQ(kept_bytes(whole, usual.stages[2]) - kept_bytes(tensors, layout.stages[2]), 2 * 6 * width);
  EXPECT_EQ(pending_kept_bytes(tensors, layout.stages[2]), 0);
}

TEST(Frozen, StepsAreFasterAndNeedLess) {
  const Cluster cluster = a100_nodes(1);
  const Prediction frozen = predict_run(kRun, cluster, {}), whole = predict_run(run_without({}), cluster, {});
  EXPECT_LT(frozen.step_seconds(), whole.step_seconds());
  for (size_t rank = 0; rank < 4; ++rank) EXPECT_LE(frozen.memory[rank].total(), whole.memory[rank].total());
  EXPECT_EQ(frozen.memory[2].moments + frozen.memory[2].gradients, 0);
}

}  // namespace
}  // namespace braid::plan::frozen_test
