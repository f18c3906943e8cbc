// Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models" (2020), tables 1 and 2.
#include "braid/plan/model_states.h"

#include <gtest/gtest.h>

#include <cmath>

namespace braid::plan::model_states_test {
namespace {

constexpr double kGB = 1e9;

double bytes(double parameters, int zero, int shards) {
  const StateBytes whole = state_bytes(DType::Float16, FormulaSet::Megatron, {parameters, 2 * parameters});
  return sharded(whole, zero, shards).total();
}

// Table 1: GB of a device by data ranks, under the stages 1, 2, 3. The paper rounds some and cuts others, so a figure
// is met when it is less than a unit of its last digit away.
struct Row {
  int shards;
  double printed[9];
};

constexpr Row kTable1[] = {
    {1, {120, 120, 120, 2048, 2048, 2048, 16000, 16000, 16000}},
    {4, {52.5, 41.3, 30, 896, 704, 512, 7000, 5500, 4000}},
    {16, {35.6, 21.6, 7.5, 608, 368, 128, 4750, 2875, 1000}},
    {64, {31.4, 16.6, 1.88, 536, 284, 32, 4187, 2218, 250}},
    {256, {30.4, 15.4, 0.47, 518, 263, 8, 4046, 2054, 62.5}},
    {1024, {30.1, 15.1, 0.12, 513, 257, 2, 4011, 2013, 15.6}},
};

double unit_of_last_digit(double printed) {
  for (double unit = 1; unit > 1e-3; unit /= 10) {
    const double units = printed / unit;
    if (std::abs(units - std::round(units)) < 1e-6) return unit;
  }
  return 1e-3;
}

TEST(ModelStates, OfZerosTable1) {
  const double models[] = {7.5e9, 128e9, 1000e9};
  for (const Row& row : kTable1) {
    for (int i = 0; i < 9; ++i) {
      const double found = bytes(models[i / 3], i % 3 + 1, row.shards) / kGB;
      EXPECT_LT(std::abs(found - row.printed[i]), unit_of_last_digit(row.printed[i]))
          << row.shards << " " << i << ": " << found << " for " << row.printed[i];
    }
  }
}

// Table 2: the largest model whose states fit 32 GB, with 64 data ranks and so many tensor ranks; in billions, with one
// digit behind the point where the paper has one.
TEST(ModelStates, OfZerosTable2) {
  const double baseline[] = {2, 4, 8, 16, 32};
  const double stage_1[] = {7.6, 15.2, 30.4, 60.8, 121.6}, stage_2[] = {14.4, 28.8, 57.6, 115.2, 230.4};
  const double stage_3[] = {128, 256, 512, 1024, 2048};  // 0.5T, 1T, 2T
  for (int i = 0; i < 5; ++i) {
    const int tensor = 1 << i;
    const auto largest = [&](int zero) { return tensor * 32 * kGB / bytes(1, zero, 64) / 1e9; };
    EXPECT_NEAR(largest(0), baseline[i], 1e-9);
    EXPECT_NEAR(largest(1), stage_1[i], 0.05 * tensor);  // 7.64 x 2^i, printed as 7.6 x 2^i
    EXPECT_NEAR(largest(2), stage_2[i], 0.05 * tensor);
    EXPECT_NEAR(largest(3), stage_3[i], 1e-9);
  }
}

TEST(ModelStates, OfOtherTypes) {
  const auto total = [](DType type, double moments, FormulaSet formulas) {
    return state_bytes(type, formulas, {1, moments}).total();
  };
  EXPECT_EQ(total(DType::BFloat16, 2, FormulaSet::Megatron), 18);
  EXPECT_EQ(total(DType::Float16, 2, FormulaSet::Braid), 18);
  EXPECT_EQ(total(DType::Float32, 2, FormulaSet::Braid), 16);
  EXPECT_EQ(total(DType::Float32, 1, FormulaSet::Braid), 12);
  EXPECT_EQ(total(DType::Float32, 0, FormulaSet::Braid), 8);
}

TEST(ModelStates, OfRoundedMoments) {
  const auto optimizer = [](DType type, double moments, FormulaSet formulas) {
    return state_bytes(type, formulas, {1, moments}, StateType::BFloat16).optimizer;
  };
  EXPECT_EQ(optimizer(DType::BFloat16, 2, FormulaSet::Braid), 8);
  EXPECT_EQ(optimizer(DType::Float32, 2, FormulaSet::Braid), 4);
  EXPECT_EQ(optimizer(DType::Float32, 1, FormulaSet::Braid), 2);
  EXPECT_EQ(optimizer(DType::BFloat16, 2, FormulaSet::Torchtitan), 8);
}

// A code of a byte, and a 64th of a float32 scale.
TEST(ModelStates, OfMomentsInCodes) {
  const auto optimizer = [](DType type, double moments) {
    return state_bytes(type, FormulaSet::Braid, {1, moments}, StateType::Int8).optimizer;
  };
  EXPECT_EQ(optimizer(DType::BFloat16, 2), 4 + 2.125);
  EXPECT_EQ(optimizer(DType::Float32, 2), 2.125);
  EXPECT_EQ(optimizer(DType::Float32, 1), 1.0625);
}

// 12 h^2 + 13 h of a block (Narayanan et al. 2021, section 5.1), shared by tensor ranks but for norms and two biases.
TEST(ModelStates, ParametersOfStages) {
  RunSpec run;
  run.model.layers = 4;
  run.model.width = 256;
  run.model.heads = 4;
  run.model.vocab = 1024;
  run.model.context = 128;
  run.mesh.pipe = 2;
  const RunLayout layout = layout_of(run, {.devices = {{.per_node = 2}}}, FormulaSet::Megatron);
  const double block = 12.0 * 256 * 256 + 13 * 256, table = 1024.0 * 256;
  EXPECT_EQ(stage_parameters(run, layout, layout.stages[0]).count(), 2 * block + table + 128 * 256);
  EXPECT_EQ(stage_parameters(run, layout, layout.stages[1]).count(), 2 * block + table + 2 * 256);
}

// Numbers of each kind as braid/optim keeps them; Muon has AdamW's two of all but the 12 h^2 inside of blocks.
TEST(ModelStates, MomentsOfEveryOptimizer) {
  RunSpec run;
  run.model = {.layers = 1, .heads = 4, .width = 256, .context = 128, .vocab = 1024};
  const RunLayout layout = layout_of(run, {.devices = {{.per_node = 1}}}, FormulaSet::Megatron);
  const double matrices = 12.0 * 256 * 256, all = matrices + 13 * 256 + (1024 + 128) * 256 + 2 * 256;
  const auto moments = [&](OptimizerKind kind, double momentum) {
    run.optimizer.kind = kind;
    run.optimizer.momentum = momentum;
    const StageParameters parameters = stage_parameters(run, layout, layout.stages[0]);
    EXPECT_EQ(parameters.count(), all);
    return parameters.shared.moments;
  };
  EXPECT_EQ(moments(OptimizerKind::AdamW, 0.9), 2 * all);
  EXPECT_EQ(moments(OptimizerKind::Sgd, 0.9), all);
  EXPECT_EQ(moments(OptimizerKind::Sgd, 0), 0);
  EXPECT_EQ(moments(OptimizerKind::Adagrad, 0), all);
  EXPECT_EQ(moments(OptimizerKind::Lion, 0), all);
  EXPECT_EQ(moments(OptimizerKind::Muon, 0.9), 2 * all - matrices);
}

}  // namespace
}  // namespace braid::plan::model_states_test
