// Gemma 2 trains the same on every layout: the bits of one rank in reproducible mode where only data, pipeline, ZeRO
// and recompute differ, and the same to 1e-10 where tensor ranks split sums.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/train/layout_run.h"

namespace braid::train::gemma2_layouts_test {
namespace {

// Six heads in three groups, both caps within reach of the scores, and windows in every other layer.
RunSpec tiny_gemma2_run() {
  RunSpec spec = tiny_spec(6, 8);
  spec.model.family = ModelFamily::Gemma2;
  spec.model.kv_heads = 3;
  spec.model.head_width = 6;
  spec.model.ffn = 36;
  spec.model.window = 3;
  spec.model.attention_cap = 2;
  spec.model.logit_cap = 1;
  spec.model.query_scalar = 5;
  spec.train.reduction = Reduction::Reproducible;
  return spec;
}

struct Layout {
  MeshSpec mesh;
  std::string schedule = "1f1b", recompute = "none";
  int zero = 0;
};

std::string text_of(const Layout& of) {
  return cat("pipe ", of.mesh.pipe, ", data ", of.mesh.data, ", tensor ", of.mesh.tensor, ", ", of.schedule, ", ",
             of.recompute, ", zero ", of.zero);
}

LayoutResult result_of(RunSpec spec, const Layout& layout) {
  spec.mesh = layout.mesh;
  spec.pipeline.schedule = layout.schedule;
  spec.memory.recompute = layout.recompute;
  spec.sync.zero = layout.zero;
  return train_layout(spec);
}

std::vector<Layout> layouts() {
  return {{{.pipe = 4}},
          {{.data = 4}},
          {{.pipe = 2, .data = 2}},
          {{.pipe = 2}, "zb-h1"},
          {{.pipe = 2}, "zb-v"},
          {{.pipe = 2}, "1f1b", "selective"},
          {{.pipe = 2}, "1f1b", "full"},
          {{}, "1f1b", "selective"},
          {{.data = 2}, "1f1b", "full", 1},
          {{.data = 2}, "1f1b", "none", 3},
          {{.data = 2}, "1f1b", "selective", 3},
          {{.pipe = 2, .data = 2}, "zb-h1", "none", 1}};
}

TEST(Gemma2Layouts, GiveTheBitsOfOneRank) {
  for (const DType type : {DType::Float32, DType::BFloat16}) {
    RunSpec spec = tiny_gemma2_run();
    spec.train.dtype = type;
    const LayoutResult want = result_of(spec, {});
    for (const Layout& layout : layouts()) {
      const LayoutResult got = result_of(spec, layout);
      EXPECT_EQ(got.losses, want.losses) << text_of(layout) << ' ' << type;
      EXPECT_TRUE(same_bits(got.params, want.params)) << text_of(layout) << ' ' << type;
    }
  }
}

TEST(Gemma2Layouts, OfTensorRanksAreTheSerialOne) {
  const RunSpec spec = tiny_gemma2_run();
  const LayoutResult want = result_of(spec, {});
  for (const Layout& layout : {Layout{{.tensor = 3}}, Layout{{.pipe = 2, .tensor = 3}, "zb-h1"},
                               Layout{{.data = 2, .tensor = 3}, "1f1b", "selective", 3}}) {
    const LayoutResult got = result_of(spec, layout);
    for (size_t step = 0; step < want.losses.size(); ++step) {
      EXPECT_NEAR(got.losses[step], want.losses[step], 1e-10) << text_of(layout);
      EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-10) << text_of(layout);
    }
    EXPECT_LT(largest_difference(got.first_gradients, want.first_gradients), 1e-10) << text_of(layout);
    EXPECT_LT(largest_difference(got.params, want.params), 1e-10) << text_of(layout);
  }
}

}  // namespace
}  // namespace braid::train::gemma2_layouts_test
