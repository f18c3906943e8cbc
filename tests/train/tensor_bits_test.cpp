// train.reduction = Reduction::Reproducible: tensor ranks train with the bits of one rank, with and without sequence
// parallelism.
#include <gtest/gtest.h>

#include "braid/base/text.h"
#include "tests/train/token_parts.h"

namespace braid::train::tensor_bits_test {
namespace {

using namespace token_parts;

// Key heads that query heads share; there are as many as the most ranks.
RunSpec grouped_llama() {
  RunSpec spec = llama();
  spec.model.heads = 16, spec.model.kv_heads = 8, spec.model.width = 40, spec.model.head_width = 4;
  return spec;
}
RunSpec grouped_gemma2() {
  RunSpec spec = gemma2();
  spec.model.heads = 16, spec.model.kv_heads = 8, spec.model.width = 40;
  return spec;
}
RunSpec gpt2_of_8() {
  RunSpec spec = gpt2();
  spec.model.heads = 8, spec.model.width = 40;
  return spec;
}
RunSpec bert_of_8() {
  RunSpec spec = bert();
  spec.model.heads = 8, spec.model.width = 40;
  return spec;
}

struct Case {
  const char* name;
  RunSpec (*model)();
  DType type;
  std::vector<MeshSpec> meshes;
  void (*change)(RunSpec& spec) = nothing;  // of the runs on several ranks
};

const std::vector<Case> kCases = {
    {"gpt2", gpt2_of_8, DType::Float32, {{.tensor = 2}, {.tensor = 4}, {.tensor = 8}}},
    {"gpt2, split tokens", gpt2_of_8, DType::Float32, {{.tensor = 8, .sequence_parallel = true}}},
    {"gpt2", gpt2_of_8, DType::BFloat16, {{.tensor = 2, .sequence_parallel = true}, {.tensor = 8}}},
    {"llama", grouped_llama, DType::Float32, {{.tensor = 8}, {.tensor = 2, .sequence_parallel = true}}},
    {"llama", grouped_llama, DType::BFloat16, {{.tensor = 4, .sequence_parallel = true}}},
    {"bert", bert_of_8, DType::Float32, {{.tensor = 4, .sequence_parallel = true}, {.tensor = 8}}},
    {"bert", bert_of_8, DType::BFloat16, {{.tensor = 4}}},
    {"gemma2", grouped_gemma2, DType::Float32, {{.tensor = 4}, {.tensor = 8, .sequence_parallel = true}}},
    {"gemma2", grouped_gemma2, DType::BFloat16, {{.tensor = 2}}},
    {"pipe and recompute",
     gpt2_of_8,
     DType::BFloat16,
     {{.pipe = 2, .tensor = 4, .sequence_parallel = true}},
     [](RunSpec& spec) { spec.memory.recompute = "full", spec.pipeline.schedule = "zb-h1"; }},
    {"zero 2",
     grouped_llama,
     DType::Float32,
     {{.data = 2, .tensor = 2, .sequence_parallel = true}},
     [](RunSpec& spec) { spec.sync.zero = 2, spec.memory.recompute = "selective"; }},
    {"zero 3", gpt2_of_8, DType::Float32, {{.data = 2, .tensor = 4}}, [](RunSpec& spec) { spec.sync.zero = 3; }},
};

TEST(TensorBits, AreThoseOfOneRank) {
  for (const Case& each : kCases) {
    RunSpec spec = each.model();
    spec.train.dtype = each.type;
    spec.train.reduction = Reduction::Reproducible;
    spec.train.steps = 3;
    spec.model.dropout = 0.1;
    const LayoutResult want = train_layout(spec);
    each.change(spec);
    for (const MeshSpec& mesh : each.meshes) {
      SCOPED_TRACE(
          cat(each.name, ", ", word(each.type), ", tensor ", mesh.tensor, mesh.sequence_parallel ? " split" : ""));
      spec.mesh = mesh;
      const LayoutResult got = train_layout(spec);
      EXPECT_TRUE(same_bits(got.first_gradients, want.first_gradients));
      EXPECT_EQ(got.losses, want.losses);
      EXPECT_EQ(got.grad_norms, want.grad_norms);
      EXPECT_TRUE(same_bits(got.params, want.params));
    }
  }
}

}  // namespace
}  // namespace braid::train::tensor_bits_test
