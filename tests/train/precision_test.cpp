// Training in bfloat16 and float16: close to float32, the same on every layout, and safe against overflow.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "tests/support/scratch_folder.h"
#include "tests/train/layout_run.h"

namespace braid::train::precision_test {
namespace {

RunSpec spec_in(const std::string& dtype) {
  RunSpec spec = tiny_spec(6, 8);
  spec.train.dtype = value_of<DType>(dtype).value();
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

// bfloat16 keeps 8 bits of a number, float16 11.
constexpr double kBfloat16Step = 1.0 / 256, kFloat16Step = 1.0 / 2048;

TEST(Precision, LowPrecisionFollowsFloat32) {
  // AdamW would make large differences of small ones.
  const auto descent_in = [](const char* dtype) {
    RunSpec spec = spec_in(dtype);
    spec.optimizer = plain_descent(spec.optimizer);
    return spec;
  };
  const LayoutResult want = train_layout(descent_in("float32"));
  for (const auto& [dtype, step] : {std::pair{"bfloat16", kBfloat16Step}, {"float16", kFloat16Step}}) {
    const LayoutResult got = train_layout(descent_in(dtype));
    for (size_t i = 0; i < want.losses.size(); ++i) {
      EXPECT_NEAR(got.losses[i], want.losses[i], 4 * step * want.losses[i]) << dtype << ", step " << i + 1;
      EXPECT_NEAR(got.grad_norms[i], want.grad_norms[i], 8 * step * want.grad_norms[i]) << dtype;
      EXPECT_NE(got.losses[i], want.losses[i]) << dtype << " is not float32";
    }
  }
}

TEST(Precision, BothHaveTheSameBitsOnDataAndPipelineLayouts) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    const LayoutResult want = train_layout(spec_in(dtype));
    for (const MeshSpec& mesh : {MeshSpec{.pipe = 2}, MeshSpec{.data = 4}, MeshSpec{.pipe = 2, .data = 2}}) {
      RunSpec spec = spec_in(dtype);
      spec.mesh = mesh;
      const LayoutResult got = train_layout(spec);
      EXPECT_EQ(got.losses, want.losses) << dtype << ", pipe " << mesh.pipe << ", data " << mesh.data;
      EXPECT_TRUE(same_bits(got.params, want.params)) << dtype << ", pipe " << mesh.pipe << ", data " << mesh.data;
    }
  }
}

TEST(Precision, TensorRanksAgreeUpToRounding) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    RunSpec spec = spec_in(dtype);
    spec.optimizer = plain_descent(spec.optimizer);
    for (const Reduction reduction : {Reduction::Fast, Reduction::Reproducible}) {
      spec.train.reduction = reduction;
      spec.mesh = {};
      const LayoutResult want = train_layout(spec);
      spec.mesh = {.data = 2, .tensor = 2};
      SCOPED_TRACE(cat(dtype, ", ", word(reduction)));
      expect_near(train_layout(spec), want, rounding_of(spec.train.dtype));
    }
  }
}

// Else a comparison of parameters would not see a rank that updates nothing.
TEST(Precision, PlainDescentMovesParametersByMoreThanTheRoundingAllowed) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    RunSpec spec = spec_in(dtype);
    spec.optimizer = plain_descent(spec.optimizer);
    const auto moved = train_layout(spec).params;
    spec.optimizer.lr = 1e-30;
    const auto still = train_layout(spec).params;
    size_t num_seen = 0;
    for (const auto& [name, tensor] : moved) {
      const double change = largest_difference({{name, tensor}}, {{name, still.at(name)}});
      num_seen += change > rounding_of(spec.train.dtype).params ? 1 : 0;
    }
    EXPECT_GT(5 * num_seen, 2 * moved.size()) << dtype << ": " << num_seen;
  }
}

// Gradients are of order 1: a scale of 2^24 takes them past the 65504 of float16.
TEST(Precision, OverflowCostsTheUpdateAndHalvesTheScale) {
  RunSpec spec = spec_in("float16");
  spec.train.loss_scale = 16777216;
  spec.train.steps = 40;
  on_every_rank(spec, [](Trainer& trainer) {
    const at::Tensor before = trainer.model().params().flat_master().clone();
    const StepReport first = trainer.step();
    ASSERT_TRUE(first.skipped);
    EXPECT_EQ(first.loss_scale, 16777216);
    EXPECT_TRUE(before.equal(trainer.model().params().flat_master()));
    int tries = 1;
    StepReport report = trainer.step();
    EXPECT_EQ(report.loss_scale, 8388608);
    while (report.skipped && ++tries < 30) report = trainer.step();
    EXPECT_FALSE(report.skipped);
    EXPECT_TRUE(std::isfinite(report.grad_norm));
    EXPECT_FALSE(before.equal(trainer.model().params().flat_master()));
  });
}

class PrecisionResume : public ScratchFolder {
 protected:
  // The masters after a third step that follows the checkpoint.
  at::Tensor third_step(const RunSpec& spec) {
    at::Tensor masters;
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder_ + "/saved");
      trainer.step();
      masters = trainer.model().params().flat_master().clone();
    });
    return masters;
  }
};

TEST_F(PrecisionResume, GoesOnWithTheSameBitsAndTheSameScale) {
  for (const char* dtype : {"bfloat16", "float16"}) {
    RunSpec spec = spec_in(dtype);
    spec.train.loss_scale = 16777216;  // in float16 the first step overflows: another scale is saved
    at::Tensor want;
    on_every_rank(spec, [&](Trainer& trainer) {
      EXPECT_EQ(trainer.step().skipped, spec.train.dtype == DType::Float16);
      trainer.step();
      trainer.save(folder_ + "/saved", "");
      trainer.step();
      want = trainer.model().params().flat_master().clone();
    });
    EXPECT_TRUE(want.equal(third_step(spec))) << dtype;
    std::filesystem::remove_all(folder_ + "/saved");
  }
}

// Its weights are those masters rounded to its own type, and it goes on from them with its own loss scale.
TEST_F(PrecisionResume, AnotherPrecisionReadsTheSameMasters) {
  at::Tensor saved;
  on_every_rank(spec_in("bfloat16"), [&](Trainer& trainer) {
    trainer.step();
    saved = trainer.model().params().flat_master().clone();
    trainer.save(folder_ + "/saved", "");
  });
  for (const char* dtype : {"float32", "float16"}) {
    const RunSpec spec = spec_in(dtype);
    on_every_rank(spec, [&](Trainer& trainer) {
      trainer.load(folder_ + "/saved");
      const param::ParamStore& params = trainer.model().params();
      EXPECT_TRUE(params.flat_master().equal(saved)) << dtype;
      EXPECT_TRUE(params.flat_data().equal(saved.to(params.flat_data().scalar_type()))) << dtype;
      const StepReport report = trainer.step();
      EXPECT_EQ(report.step, 2) << dtype;
      EXPECT_EQ(report.loss_scale, dtype == std::string("float16") ? spec.train.loss_scale : 1) << dtype;
      EXPECT_EQ(params.flat_master().equal(saved), report.skipped) << dtype;
    });
  }
}

}  // namespace
}  // namespace braid::train::precision_test
