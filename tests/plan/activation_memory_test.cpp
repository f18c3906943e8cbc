// Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models" (2022), table 2.
#include "braid/plan/activation_memory.h"

#include <gtest/gtest.h>

namespace braid::plan::activation_memory_test {
namespace {

TEST(ActivationMemory, OfKorthikantisTable2) {
  RunSpec run;
  run.model.layers = 2;
  run.model.dropout = 0.1;
  run.model.heads = 16;
  run.model.width = 1024;
  run.model.context = 512;
  run.model.vocab = 1024;
  run.train.microbatch = 3;
  run.train.dtype = DType::Float16;
  const double s = 512, b = 3, h = 1024, a = 16;
  const auto saved = [&](int t, bool sequence, const char* recompute) {
    run.mesh.tensor = t;
    run.mesh.sequence_parallel = sequence;
    const RunLayout layout = layout_of(run, {.devices = {{.per_node = 8}}}, FormulaSet::Megatron);
    return saved_bytes(run, layout, *spec::recompute_policy(recompute));
  };
  EXPECT_EQ(saved(1, false, "none"), s * b * h * (34 + 5 * a * s / h));
  for (const double t : {2.0, 8.0}) {
    const int ranks = static_cast<int>(t);
    EXPECT_EQ(saved(ranks, false, "none"), s * b * h * (10 + 24 / t + 5 * a * s / (h * t)));
    EXPECT_EQ(saved(ranks, true, "none"), s * b * h * (34 / t + 5 * a * s / (h * t)));
    EXPECT_EQ(saved(ranks, false, "selective"), s * b * h * (10 + 24 / t));
    EXPECT_EQ(saved(ranks, true, "selective"), s * b * h * (34 / t));
    EXPECT_EQ(saved(ranks, false, "full"), s * b * h * 2);
  }
}

// Qi et al. (2023), table 1: 34 s b h + 5 a s^2 b before the input-gradient pass, 32 s b h after it.
TEST(ActivationMemory, OfZeroBubblesTable1) {
  RunSpec run;
  run.model.layers = 1;
  run.model.dropout = 0.1;
  run.model.heads = 24;
  run.model.width = 2304;
  run.model.context = 1024;
  run.model.vocab = 50257;
  run.train.microbatch = 6;
  run.train.dtype = DType::BFloat16;
  const RunLayout layout = layout_of(run, {.devices = {{.per_node = 8}}}, FormulaSet::Megatron);
  EXPECT_EQ(saved_bytes(run, layout, {}), 1024.0 * 6 * (34 * 2304 + 5 * 24 * 1024));
  EXPECT_EQ(pending_bytes(run, layout), 1024.0 * 6 * 32 * 2304);
}

}  // namespace
}  // namespace braid::plan::activation_memory_test
