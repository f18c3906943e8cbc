// The whole Llama: the same on every number of tensor ranks, listed as documented; documents apart; attention's rotary
// positions are relative.

#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/layout/parameters.h"
#include "tests/nn/model_run.h"

namespace braid::nn::llama_test {
namespace {

class Llama : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Ranks, Llama, testing::Values(2, 3, 4));

// Six heads in groups of two, or eight in groups of two where four ranks share them.
ModelRun run_on(int ranks) {
  ModelRun run{ranks == 3 ? tiny_llama() : tiny_llama3(), ranks};
  if (ranks == 2) run.spec.kv_heads = 2;
  if (ranks == 4) run.spec.heads = 8, run.spec.kv_heads = 4;
  run.microbatches = 2;
  return run;
}

TEST_P(Llama, ParallelIsSerial) {
  ModelRun run = run_on(GetParam());
  run.spec.dropout = 0.3;
  const auto parallel = model_step(run);
  run.ranks = 1;
  expect_equal(parallel, model_step(run), 1e-12);
}

TEST_P(Llama, EveryHeadOfItsOwnKeysIsSerialToo) {
  ModelRun run = run_on(GetParam());
  run.spec.kv_heads = 0;
  run.spec.ffn = 0;
  if (GetParam() == 3) run.spec.ffn = 96;
  const auto parallel = model_step(run);
  run.ranks = 1;
  expect_equal(parallel, model_step(run), 1e-12);
}

// A window, biases, wide heads and norms on them, all at once.
TEST_P(Llama, ParallelIsSerialWhateverHeadsDo) {
  ModelRun run = run_on(GetParam());
  run.spec.window = 3;
  run.spec.qkv_bias = true;
  run.spec.head_width = 10;
  run.spec.qk_norm = true;
  const auto parallel = model_step(run);
  EXPECT_TRUE(parallel.contains("grad.blocks.1.attention.norm_k.weight"));
  EXPECT_TRUE(parallel.contains("grad.blocks.0.attention.qkv.bias"));
  run.ranks = 1;
  expect_equal(parallel, model_step(run), 1e-12);
}

TEST(LlamaRules, EpsAndBaseAndScalingCount) {
  run_ranks(1, [&](Communicator& group) {
    const auto loss = [&](const ModelSpec& spec) {
      const ModelRun run{spec};
      return RunModel(run, group).forward(run_microbatch(run, 0)).item<double>();
    };
    const double plain = loss(tiny_llama3());
    const auto expect_change = [&](auto ModelSpec::*figure, auto value) {
      ModelSpec spec = tiny_llama3();
      spec.*figure = value;
      EXPECT_GT(std::abs(loss(spec) - plain), 1e-6) << value;
    };
    expect_change(&ModelSpec::norm_eps, 0.1);
    expect_change(&ModelSpec::rope_base, 50.0);
    expect_change(&ModelSpec::rope_scaling, RopeScaling::None);
    expect_change(&ModelSpec::rope_factor, 2.0);
    expect_change(&ModelSpec::rope_low_frequency, 2.0);
    expect_change(&ModelSpec::rope_high_frequency, 8.0);
    expect_change(&ModelSpec::rope_context, 64);
  });
}

TEST(LlamaParams, ListsEveryParameterWithItsDecayAndInit) {
  const layout::ModelParams blocks = layout::model_params(tiny_llama3(), 0, 1);
  ASSERT_EQ(blocks.size(), 4u);
  EXPECT_EQ(blocks[0].name, "embedding");
  EXPECT_EQ(blocks[2].name, "blocks.1");
  EXPECT_EQ(blocks[3].name, "head");
  EXPECT_EQ(blocks[3].params[1].name, "head.weight");
  int64_t elements = 0;
  for (const layout::BlockSpec& block : blocks) {
    for (const layout::ParamSpec& p : block.params) {
      const bool matrix = p.placement.global_shape.size() == 2;
      EXPECT_EQ(p.decay, matrix ? model::WeightDecay::Yes : model::WeightDecay::No) << p.name;
      EXPECT_EQ(p.init.kind == model::Init::Kind::Normal, matrix) << p.name;
      const bool residual = p.name.ends_with("projection.weight") || p.name.ends_with("down.weight");
      EXPECT_DOUBLE_EQ(p.init.std, residual ? 0.02 / 2 : matrix ? 0.02 : 0) << p.name;
      EXPECT_EQ(p.uses, 1);
      elements += mesh::num_elements(p.placement.global_shape);
    }
  }
  // Queries and projection, keys and values, the gated branch, two norms per block; two tables, the last norm.
  EXPECT_EQ(elements, 2 * (2 * 48 * 48 + 2 * 24 * 48 + 3 * 72 * 48 + 2 * 48) + 2 * 19 * 48 + 48);
  EXPECT_EQ(layout::model_params(tiny_llama(), 0, 1).back().params[1].name, "wte.weight");
  EXPECT_EQ(layout::model_params(tiny_llama(), 0, 1).back().params[1].use, 1);
  EXPECT_THROW(layout::model_params(tiny_llama(), 0, 2), InternalError) << "three key heads over two ranks";
}

// Logits of tokens, documents as given or undefined.
at::Tensor logits(RunModel& model, const at::Tensor& tokens_bt, const at::Tensor& documents_bt) {
  const at::NoGradGuard no_grad;
  Microbatch m;
  m.training = false;
  m.tokens_bt = tokens_bt;
  m.documents_bt = documents_bt;
  return model.forward(m);
}

class Documents : public testing::TestWithParam<ModelSpec> {};
INSTANTIATE_TEST_SUITE_P(Families, Documents,
                         testing::Values(tiny_gpt2(), tiny_llama3(), tiny_mistral(), tiny_qwen3(), tiny_gemma2()),
                         [](const auto& info) { return cat(info.param.family, "_", info.index); });

// Two sequences: documents of 3 and 5 tokens, one of 8.
at::Tensor two_and_one() {
  const at::Tensor documents = at::zeros({2, 8}, at::kLong);
  documents[0].narrow(0, 3, 5).fill_(1);
  return documents;
}

TEST_P(Documents, ATokenSeesItsOwnOnly) {
  const ModelRun run{GetParam()};
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const at::Tensor tokens = run_microbatch(run, 0).tokens_bt;
    const at::Tensor masked = logits(model, tokens, two_and_one()), causal = logits(model, tokens, {});
    EXPECT_LT(relative_error(masked[1], causal[1]), 1e-14);
    EXPECT_LT(relative_error(masked[0].narrow(0, 0, 3), causal[0].narrow(0, 0, 3)), 1e-14);
    EXPECT_GT(relative_error(masked[0].narrow(0, 3, 5), causal[0].narrow(0, 3, 5)), 1e-3);
    // Other documents change nothing.
    const at::Tensor other = tokens.clone();
    other[0].narrow(0, 0, 3).copy_(tokens[0].narrow(0, 0, 3).add(1).remainder(19));
    const at::Tensor after = logits(model, other, two_and_one());
    EXPECT_LT(relative_error(after[0].narrow(0, 3, 5), masked[0].narrow(0, 3, 5)), 1e-14);
    EXPECT_GT(relative_error(after[0].narrow(0, 0, 3), masked[0].narrow(0, 0, 3)), 1e-3);
    EXPECT_TRUE(logits(model, tokens, at::zeros({2, 8}, at::kLong)).equal(causal)) << "one document each";
  });
}

TEST(LlamaDocuments, RotaryPlacesAreRelative) {
  const ModelRun run{tiny_llama()};
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const at::Tensor tokens = run_microbatch(run, 0).tokens_bt;
    const at::Tensor masked = logits(model, tokens, two_and_one());
    const at::Tensor alone = logits(model, tokens.narrow(0, 0, 1).narrow(1, 3, 5), {});
    EXPECT_LT(relative_error(masked[0].narrow(0, 3, 5), alone[0]), 1e-12);
  });
}

// Gradients of two documents in a row are those of the two by themselves, weighed by their tokens.
TEST_P(Documents, GradientsAreThoseOfTheDocumentsAlone) {
  ModelRun run{GetParam()};
  if (run.spec.family == ModelFamily::Gpt2) return;  // its positions are absolute
  run.batch = 1;
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const auto gradients = [&](int64_t begin, int64_t count, const at::Tensor& documents) {
      Microbatch m = run_microbatch(run, 0);
      m.tokens_bt = m.tokens_bt.narrow(1, begin, count).contiguous();
      m.targets_bt = m.targets_bt.narrow(1, begin, count).contiguous();
      m.documents_bt = documents;
      model.world.sink->begin_step(1);
      model.forward(m).backward();
      model.world.queue.run(0);
      std::map<std::string, at::Tensor> all;
      for (const param::Parameter& p : model.world.store.params()) all[p.name] = p.main_grad.mul(count / 8.0);
      return all;
    };
    const auto both = gradients(0, 8, two_and_one().narrow(0, 0, 1));
    auto sum = gradients(0, 3, {});
    for (const auto& [name, gradient] : gradients(3, 5, {})) sum[name].add_(gradient);
    expect_equal(both, sum, 1e-12);
  });
}

TEST(LlamaDocuments, MustLieInOneRunEach) {
  const ModelRun run{tiny_llama()};
  run_ranks(1, [&](Communicator& group) {
    RunModel model(run, group);
    const at::Tensor documents = two_and_one();
    documents[0][7] = 0;
    EXPECT_THROW(logits(model, run_microbatch(run, 0).tokens_bt, documents), InternalError);
  });
}

}  // namespace
}  // namespace braid::nn::llama_test
