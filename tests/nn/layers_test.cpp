// Every op of a transformer against composed LibTorch operations on global tensors, in float64: forward, gradient of
// the input and of every weight, over two microbatches, for odd and even numbers of tensor ranks.
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include <cmath>

#include "braid/model/block_builder.h"
#include "braid/model/families.h"
#include "braid/nn/opaque.h"
#include "tests/nn/op_case.h"

namespace braid::nn::layers_test {
namespace {

using namespace op_case;
using model::BlockBuilder;
using model::OpKind;

at::Tensor plain_linear(Tensors& p, const std::string& name, const at::Tensor& x) {
  const auto bias = p.find(name + ".bias");
  return at::linear(x, p[name + ".weight"], bias == p.end() ? at::Tensor() : bias->second);
}

Case column_case() {
  return {
      [](const ModelSpec& spec) { return BlockBuilder(spec, "btc").linear("up", "f").bias().build(); },
      [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_linear(p, "up", x); }};
}

Case row_case() {
  return {
      [](const ModelSpec& spec) { return BlockBuilder(spec, "btf").linear("down", "c").bias().build(); },
      [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_linear(p, "down", x); }};
}

at::Tensor plain_mlp(Tensors& p, const at::Tensor& x) {
  return plain_linear(p, "down", at::gelu(plain_linear(p, "up", x), "tanh"));
}

Case mlp_case() {
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            return block.linear("up", "f").bias().apply(OpKind::Gelu).linear("down", "c").bias().build();
          },
          [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_mlp(p, x); }};
}

at::Tensor plain_attention(const ModelSpec& spec, Tensors& p, const at::Tensor& x) {
  const int64_t c = spec.width;
  std::vector<at::Tensor> heads;
  const at::Tensor qkv = plain_linear(p, "qkv", x);
  for (int64_t h = 0; h < spec.heads; ++h) {
    const at::Tensor q = qkv.narrow(2, 2 * h, 2), k = qkv.narrow(2, c + 2 * h, 2), v = qkv.narrow(2, 2 * c + 2 * h, 2);
    const at::Tensor scores = q.matmul(k.transpose(1, 2)).div(std::sqrt(2.0));
    const at::Tensor future = at::full({kTime, kTime}, 1, at::kBool).triu(1);
    heads.push_back(scores.masked_fill(future, -INFINITY).softmax(-1).matmul(v));
  }
  return plain_linear(p, "projection", at::cat(heads, -1));
}

Case attention_case() {
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            return block.linear("qkv", "[kmd|kd|kd]").bias().attention().linear("projection", "c").bias().build();
          },
          [](const ModelSpec& spec, Tensors& p, const at::Tensor& x, const Microbatch&) {
            return plain_attention(spec, p, x);
          }};
}

Case layer_norm_case() {
  return {[](const ModelSpec& spec) { return BlockBuilder(spec, "btc").norm(OpKind::LayerNorm, "ln_1").build(); },
          [](const ModelSpec& spec, Tensors& p, const at::Tensor& x, const Microbatch&) {
            return at::layer_norm(x, {spec.width}, p["ln_1.weight"], p["ln_1.bias"], 1e-5);
          }};
}

Case embedding_case() {
  return {[](const ModelSpec& spec) { return BlockBuilder(spec, "bt").lookup("wte").positions("wpe").build(); },
          [](const ModelSpec&, Tensors& p, const at::Tensor&, const Microbatch& m) {
            const at::Tensor rows = p["wte.weight"].index_select(0, m.tokens_bt.flatten());
            return rows.view({kBatch, kTime, -1}).add(p["wpe.weight"].narrow(0, 0, kTime));
          }};
}

// Attention and feed-forward layer read one norm and are added, as in PaLM.
Case parallel_case() {
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            const int normed = block.norm(OpKind::LayerNorm, "ln").value();
            block.linear("qkv", "[kmd|kd|kd]").bias().attention();
            const int attended = block.linear("projection", "c").value();
            block.from(normed).linear("up", "f").bias().apply(OpKind::Gelu).linear("down", "c");
            return block.plus(attended).join().build();
          },
          [](const ModelSpec& spec, Tensors& p, const at::Tensor& x, const Microbatch&) {
            const at::Tensor normed = at::layer_norm(x, {spec.width}, p["ln.weight"], p["ln.bias"], 1e-5);
            return x.add(plain_attention(spec, p, normed)).add(plain_mlp(p, normed));
          }};
}

// Squared ReLU with a scale for each feature, which tensor ranks split.
Case opaque_case() {
  static const auto kScaledSquare = std::make_shared<const model::OpaqueFunction>(model::OpaqueFunction{
      [](const at::Tensor& x, const std::vector<at::Tensor>& params) { return x.relu().square().mul(params[0]); }});
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            block.linear("up", "f").bias().opaque(kScaledSquare, "btf", {{"scale", "f"}});
            return block.linear("down", "c").join().build();
          },
          [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) {
            const at::Tensor inner = plain_linear(p, "up", x).relu().square().mul(p["scale"]);
            return x.add(at::linear(inner, p["down.weight"]));
          }};
}

using Inner = std::function<at::Tensor(const at::Tensor& x, const Tensors& params)>;

// The function of an opaque op with these parameters.
std::shared_ptr<const model::OpaqueFunction> function_of(const Inner& inner, const std::vector<std::string>& names) {
  return std::make_shared<const model::OpaqueFunction>(
      model::OpaqueFunction{[=](const at::Tensor& x, const std::vector<at::Tensor>& given) {
        Tensors params;
        for (size_t i = 0; i < names.size(); ++i) params[names[i]] = given[i];
        return inner(x, params);
      }});
}

// A parameter that all features share, whose gradients tensor ranks add, and one that is not used.
Case shared_opaque_case() {
  static const Inner kScaled = [](const at::Tensor& x, const Tensors& p) { return x.mul(p.at("shared").sum()); };
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            block.linear("up", "f").opaque(function_of(kScaled, {"shared", "unused"}), "btf",
                                           {{"shared", "d"}, {"unused", "f"}});
            return block.linear("down", "c").join().build();
          },
          [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) {
            const at::Tensor inner = kScaled(at::linear(x, p["up.weight"]), p).add(p["unused"].mul(0));
            return x.add(at::linear(inner, p["down.weight"]));
          }};
}

// Strided partial sums.
Case summed_opaque_case() {
  static const Inner kProduct = [](const at::Tensor& x, const Tensors& p) {
    return p.at("down").matmul(x.relu().transpose(1, 2)).transpose(1, 2);
  };
  return {
      [](const ModelSpec& spec) {
        BlockBuilder block(spec, "btc");
        return block.linear("up", "f").opaque(function_of(kProduct, {"down"}), "btc", {{"down", "cf"}}).join().build();
      },
      [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) {
        return x.add(kProduct(at::linear(x, p["up.weight"]), p));
      }};
}

// The residual adds what a bias makes to itself.
Case doubled_case() {
  return {[](const ModelSpec& spec) {
            BlockBuilder block(spec, "btc");
            block.linear("up", "f").linear("down", "c").bias();
            return block.plus(block.value()).join().build();
          },
          [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch&) {
            return x.add(plain_linear(p, "down", at::linear(x, p["up.weight"])).mul(2));
          }};
}

// With a padded table, whose padded rows must get no gradient.
Case loss_case() {
  return {[](const ModelSpec& spec) { return BlockBuilder(spec, "btc").loss("wte").build(); },
          [](const ModelSpec&, Tensors& p, const at::Tensor& x, const Microbatch& m) {
            const at::Tensor logits = at::linear(x, p["wte.weight"]);
            return at::log_softmax(logits, -1).gather(-1, m.targets_bt.unsqueeze(-1)).mean().neg();
          }};
}

struct Size {
  int ranks, heads;
};

class Layers : public testing::TestWithParam<Size> {
 protected:
  void expect_transparent(const Case& c) const {
    const auto [n, heads] = GetParam();
    op_case::expect_transparent(c, n, heads);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Layers,
                         testing::Values(Size{1, 6}, Size{2, 6}, Size{3, 6}, Size{4, 8}, Size{6, 6}, Size{8, 8}),
                         [](const auto& info) { return std::to_string(info.param.ranks); });

TEST_P(Layers, ColumnLinear) { expect_transparent(column_case()); }
TEST_P(Layers, RowLinear) { expect_transparent(row_case()); }
TEST_P(Layers, Mlp) { expect_transparent(mlp_case()); }
TEST_P(Layers, Attention) { expect_transparent(attention_case()); }
TEST_P(Layers, LayerNorm) { expect_transparent(layer_norm_case()); }
TEST_P(Layers, Embeddings) { expect_transparent(embedding_case()); }
TEST_P(Layers, InParallel) { expect_transparent(parallel_case()); }
TEST_P(Layers, Opaque) { expect_transparent(opaque_case()); }
TEST_P(Layers, OpaqueWithASharedParameter) { expect_transparent(shared_opaque_case()); }
TEST_P(Layers, OpaqueWithPartialSums) { expect_transparent(summed_opaque_case()); }
TEST_P(Layers, Doubled) { expect_transparent(doubled_case()); }
TEST_P(Layers, Loss) { expect_transparent(loss_case()); }

}  // namespace
}  // namespace braid::nn::layers_test
