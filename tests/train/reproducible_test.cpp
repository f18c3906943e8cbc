// train.reduction = Reduction::Reproducible: float32 training has the same bits on every data and pipeline layout.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/support/sampled.h"
#include "tests/train/layout_run.h"

namespace braid::train::reproducible_test {
namespace {

RunSpec float32_spec(const std::string& reduction) {
  RunSpec spec = tiny_spec(6, 16);
  spec.train.dtype = DType::Float32;
  spec.train.reduction = value_of<Reduction>(reduction).value();
  return spec;
}

void expect_same_bits(const LayoutResult& got, const LayoutResult& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.grad_norms, want.grad_norms);
  EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
  EXPECT_TRUE(same_bits(got.params, want.params));
}

TEST(Reproducible, DataRanksPipelineRanksAndSchedulesGiveTheSameBits) {
  const LayoutResult want = train_layout(float32_spec("reproducible"));
  std::vector<RunSpec> all;
  for (const int data : {8, 1, 2, 4}) {
    for (const int pipe : {1, 2, 4}) {
      for (const char* schedule : {"gpipe", "1f1b"}) {
        if (data * pipe > 8) continue;
        RunSpec& spec = all.emplace_back(float32_spec("reproducible"));
        spec.mesh.data = data;
        spec.mesh.pipe = pipe;
        spec.pipeline.schedule = schedule;
      }
    }
  }
  for (const RunSpec& spec : sampled(all, 5)) {
    SCOPED_TRACE(cat("data ", spec.mesh.data, " pipe ", spec.mesh.pipe, " ", spec.pipeline.schedule));
    expect_same_bits(train_layout(spec), want);
  }
}

TEST(Reproducible, CutsInsideBlocksGiveTheSameBits) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    RunSpec spec = float32_spec("reproducible");
    spec.train.dtype = value_of<DType>(dtype).value();
    const LayoutResult want = train_layout(spec);
    spec.mesh.pipe = 3;
    for (const char* partition : {"2.5,3,2.5", "0,7.5,0.5", "3.5,4.5,0"}) {
      SCOPED_TRACE(cat(dtype, " ", partition));
      spec.pipeline.partition = partition;
      expect_same_bits(train_layout(spec), want);
    }
  }
}

TEST(Reproducible, FastModeDoesNotPromiseThisSoTheTestCanFail) {
  const LayoutResult want = train_layout(float32_spec("fast"));
  RunSpec spec = float32_spec("fast");
  spec.mesh.data = 8;
  EXPECT_FALSE(same_bits(train_layout(spec).params, want.params));
}

TEST(Reproducible, OneRunTwiceGivesTheSameBitsInFastMode) {
  RunSpec spec = float32_spec("fast");
  spec.mesh = {.pipe = 2, .data = 2, .context = 1, .expert = 1, .tensor = 2};
  expect_same_bits(train_layout(spec), train_layout(spec));
}

}  // namespace
}  // namespace braid::train::reproducible_test
