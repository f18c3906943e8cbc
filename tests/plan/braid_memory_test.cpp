// The working memory of one pass of a stage; all else is compared with runs (tests/cli/predicted_memory_test.py).
#include "braid/plan/braid_memory.h"

#include <gtest/gtest.h>

namespace braid::plan::braid_memory_test {
namespace {

constexpr double kTokens = 2 * 512, kWidth = 1024;

RunSpec gpt2(DType type, double dropout) {
  RunSpec run;
  run.model = {.layers = 2, .heads = 16, .width = 1024, .context = 512, .vocab = 1024, .dropout = dropout};
  run.train.microbatch = 2;
  run.train.dtype = type;
  return run;
}

// Bytes for each element of a hidden state, of a stage with a block and no end.
double working(const std::vector<DeviceGroup>& kinds, DType type, double dropout = 0) {
  const RunSpec run = gpt2(type, dropout);
  const Cluster cluster{.devices = kinds};
  const RunLayout layout = layout_of(run, {.devices = {{.per_node = 1}}}, FormulaSet::Braid);
  const std::vector<DeviceRates> rates;
  return working_most_bytes({run, cluster, FormulaSet::Braid, layout, rates}, {run, layout}, {.blocks = 1}) /
         (kTokens * kWidth);
}

TEST(BraidMemory, ProductsOfNarrowTypesCopyTheirFactors) {
  const DeviceGroup device, cores{.shared_cores = true}, with_products{.shared_cores = true, .bfloat16_products = true};
  // The gradient of the activation's output, of 4 h.
  EXPECT_EQ(working({device}, DType::BFloat16), 4 * 2);
  EXPECT_EQ(working({cores}, DType::Float32), 4 * 4);
  // And the gradient, of h or 4 h, the weight, of 4 h, and the input's gradient in float32; or the input again, 4 h.
  EXPECT_EQ(working({cores}, DType::BFloat16), 4 * 2 + 9 * 4);
  EXPECT_EQ(working({with_products}, DType::BFloat16), 4 * 2 + 4 * 2);
  EXPECT_EQ(working({with_products}, DType::Float16), 4 * 2 + 9 * 4);
  EXPECT_EQ(working({with_products, cores}, DType::BFloat16), 4 * 2 + 9 * 4);
}

TEST(BraidMemory, TheFirstSegmentHoldsWhatTheEmbeddingKeepsWhenItIsComputedAgain) {
  RunSpec run = gpt2(DType::Float32, 0);
  run.model.family = ModelFamily::Bert;  // a norm behind the tables keeps its input
  const Cluster cluster{.devices = {{}}};
  const RunLayout layout = layout_of(run, {.devices = {{.per_node = 1}}}, FormulaSet::Braid);
  const std::vector<DeviceRates> rates;
  const ActivationBytes bytes(run, layout);
  const auto peak_of = [&](const StageLoad& load) {
    return kept_bytes(bytes, load) + working_most_bytes({run, cluster, FormulaSet::Braid, layout, rates}, bytes, load);
  };
  StageLoad load{.blocks = 1, .recompute = {.keeps = spec::Recompute::Keeps::SegmentInputs, .blocks = 1}};
  load.order = {{0, bytes.parts.size()}};
  const double without = peak_of(load);
  load.embedding = true;
  EXPECT_EQ(peak_of(load), without + 4 * kTokens * kWidth + 8 * kTokens);  // with the norm's statistics
}

TEST(BraidMemory, DropoutHoldsTheGradientBehindItsMask) {
  EXPECT_EQ(working({{}}, DType::Float32, 0.1), working({{}}, DType::Float32) + 4);
}

}  // namespace
}  // namespace braid::plan::braid_memory_test
