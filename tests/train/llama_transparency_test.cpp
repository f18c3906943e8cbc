// Llama trains the same on every mesh: grouped heads cut by tensor ranks, tied and untied heads at both ends of a
// pipeline, the same bits where they are promised.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/train/layout_run.h"

namespace braid::train::llama_transparency_test {
namespace {

// Six heads in three groups.
RunSpec tiny_llama_run(const std::string& output_weights) {
  RunSpec spec = tiny_spec(6, 8);
  spec.model.family = ModelFamily::Llama;
  spec.model.kv_heads = 3;
  spec.model.ffn = 36;
  spec.model.output_weights = value_of<OutputWeights>(output_weights).value();
  spec.model.rope_scaling = RopeScaling::Llama3;
  spec.model.rope_base = 100;
  spec.model.rope_context = 16;
  return spec;
}

const LayoutResult& serial(const std::string& output_weights) {
  static std::map<std::string, LayoutResult> known;
  if (!known.contains(output_weights)) {
    RunSpec spec = tiny_llama_run(output_weights);
    spec.train.microbatch = spec.train.batch;
    known[output_weights] = train_layout(spec);
  }
  return known[output_weights];
}

struct Layout {
  int data, pipe, tensor;
  std::string output_weights;
};

std::ostream& operator<<(std::ostream& out, const Layout& layout) {
  return out << "data" << layout.data << "_pipe" << layout.pipe << "_tensor" << layout.tensor << "_"
             << layout.output_weights;
}

class LlamaTransparency : public testing::TestWithParam<Layout> {};

TEST_P(LlamaTransparency, LossGradientsAndParametersAreTheSerialOnes) {
  const Layout layout = GetParam();
  RunSpec spec = tiny_llama_run(layout.output_weights);
  spec.mesh = {.pipe = layout.pipe, .data = layout.data, .context = 1, .expert = 1, .tensor = layout.tensor};
  const LayoutResult& want = serial(layout.output_weights);
  const LayoutResult got = train_layout(spec);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10);
    EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-10);
  }
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-10);
}

INSTANTIATE_TEST_SUITE_P(Meshes, LlamaTransparency,
                         testing::Values(Layout{1, 1, 1, "tied"}, Layout{1, 1, 3, "tied"}, Layout{1, 4, 1, "tied"},
                                         Layout{2, 2, 1, "tied"}, Layout{1, 2, 3, "tied"}, Layout{2, 1, 3, "untied"},
                                         Layout{1, 2, 3, "untied"}, Layout{4, 2, 1, "untied"}),
                         [](const auto& info) { return cat(info.param); });

TEST(LlamaReproducible, DataAndPipelineLayoutsGiveTheSameBits) {
  for (const char* dtype : {"float32", "bfloat16"}) {
    RunSpec spec = tiny_llama_run("tied");
    spec.train.reduction = Reduction::Reproducible;
    spec.train.dtype = value_of<DType>(dtype).value();
    const LayoutResult want = train_layout(spec);
    for (const MeshSpec& mesh : {MeshSpec{.pipe = 4}, MeshSpec{.data = 4}, MeshSpec{.pipe = 2, .data = 2}}) {
      spec.mesh = mesh;
      const LayoutResult got = train_layout(spec);
      EXPECT_EQ(got.losses, want.losses) << dtype << ", pipe " << mesh.pipe << ", data " << mesh.data;
      EXPECT_TRUE(same_bits(got.params, want.params)) << dtype << ", pipe " << mesh.pipe << ", data " << mesh.data;
    }
  }
}

TEST(LlamaDropout, MasksFollowTheGlobalMicrobatch) {
  RunSpec spec = tiny_llama_run("tied");
  spec.model.dropout = 0.3;
  const LayoutResult want = train_layout(spec);
  spec.mesh = {.pipe = 2, .data = 1, .context = 1, .expert = 1, .tensor = 3};
  EXPECT_LT(largest_difference(train_layout(spec).params, want.params), 1e-10);
}

}  // namespace
}  // namespace braid::train::llama_transparency_test
