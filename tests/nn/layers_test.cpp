// Every parallel layer against composed LibTorch operations on global tensors, in float64: forward, gradient of the
// input and of every weight, over two microbatches, for odd and even numbers of tensor ranks.
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include <cmath>

#include "braid/nn/attention.h"
#include "braid/nn/cross_entropy.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/mlp.h"
#include "braid/nn/norms.h"
#include "braid/nn/regions.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::layers_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
constexpr int64_t kBatch = 2, kTime = 5, kVocab = 19;
constexpr int kMicrobatches = 2;

// The part of the model's shape that a case uses.
struct Cut {
  int part, parts, heads;
  int64_t width() const { return heads * 2; }
  int64_t padded_vocab() const { return (kVocab + parts - 1) / parts * parts; }
  layout::ParamSpec split(const std::string& name, const mesh::Index& shape, int dim) const {
    return {name, mesh::split_dim(shape, dim, shape[dim], {part, parts, mesh::Axis::Tensor})};
  }
  layout::ParamSpec whole(const std::string& name, const mesh::Index& shape) const {
    return {name, mesh::replicated(shape)};
  }
  layout::ParamSpec qkv(const std::string& name, const mesh::Index& shape) const {
    return {name, mesh::split_segments(shape, 0, 3, {part, parts, mesh::Axis::Tensor})};
  }
};

// A layer under test. `forward` takes and returns tensors that are the same on all ranks.
struct Case {
  std::string name;
  int64_t last;  // of x, in widths; 0: x is not an input
  std::function<std::vector<layout::ParamSpec>(const Cut&)> params;
  std::function<at::Tensor(const Cut&, RankWorld&, const at::Tensor& x, const Microbatch&)> forward;
  std::function<at::Tensor(const Cut&, Tensors&, const at::Tensor& x, const Microbatch&)> reference;
};

Microbatch microbatch_of(int micro) {
  Microbatch m;
  m.micro = micro;
  m.tokens_bt = formula_integers("tokens" + std::to_string(micro), {kBatch, kTime}, kVocab);
  m.targets_bt = formula_integers("targets" + std::to_string(micro), {kBatch, kTime}, kVocab);
  return m;
}

at::Tensor input_of(const Case& c, const Cut& cut, int micro) {
  const std::string name = "x" + std::to_string(micro);
  return formula_tensor(name, {kBatch, kTime, std::max<int64_t>(1, c.last) * cut.width()}).requires_grad_();
}

// Weighs the outputs unevenly; a loss as it is.
at::Tensor scalar_of(const at::Tensor& y) {
  return y.dim() == 0 ? y : y.mul(formula_tensor("cotangent", y.sizes())).sum();
}

Tensors run_parallel(const Case& c, int n, int heads) {
  Gathering results(n);
  run_ranks(n, [&](Communicator& group) {
    const int r = group.rank();
    const Cut cut{r, n, heads};
    RankWorld world({{"layer", c.params(cut)}}, group);
    world.sink->begin_step(kMicrobatches);
    for (int micro = 0; micro < kMicrobatches; ++micro) {
      const at::Tensor x = input_of(c, cut, micro);
      const at::Tensor y = c.forward(cut, world, x, microbatch_of(micro));
      scalar_of(y).backward();
      results.put_replicated("y" + std::to_string(micro), r, y);
      if (c.last > 0) results.put_replicated("dx" + std::to_string(micro), r, x.grad());
    }
    world.queue.run_all();
    results.put_gradients(r, world);
  });
  return results.global();
}

Tensors run_reference(const Case& c, int heads) {
  const Cut cut{0, 1, heads};
  Tensors params, results;
  for (const layout::ParamSpec& p : c.params(cut)) {
    params[p.name] = formula_parameter(p.name, p.placement.global_shape).requires_grad_();
  }
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    const at::Tensor x = input_of(c, cut, micro);
    const at::Tensor y = c.reference(cut, params, x, microbatch_of(micro));
    scalar_of(y).backward();
    results["y" + std::to_string(micro)] = y.detach();
    if (c.last > 0) results["dx" + std::to_string(micro)] = x.grad();
  }
  for (const auto& [name, p] : params) results["grad." + name] = p.grad();
  return results;
}

ParallelLinearOptions linear_options(RankWorld& world, const std::string& name) {
  return {{&world.store[name + ".weight"], 0}, &world.store[name + ".bias"]};
}

at::Tensor plain_linear(Tensors& p, const std::string& name, const at::Tensor& x) {
  return at::linear(x, p[name + ".weight"], p[name + ".bias"]);
}

Case column_case() {
  return {"column", 1,
          [](const Cut& cut) -> std::vector<layout::ParamSpec> {
            const int64_t c = cut.width();
            return {cut.split("up.weight", {4 * c, c}, 0), cut.split("up.bias", {4 * c}, 0)};
          },
          [](const Cut&, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
            const ColumnParallelLinear layer(linear_options(world, "up"), world.context);
            return gather_from(layer.forward(x, m), world.context.tensor);
          },
          [](const Cut&, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_linear(p, "up", x); }};
}

Case row_case() {
  return {"row", 4,
          [](const Cut& cut) -> std::vector<layout::ParamSpec> {
            const int64_t c = cut.width();
            return {cut.split("down.weight", {c, 4 * c}, 1), cut.whole("down.bias", {c})};
          },
          [](const Cut&, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
            const RowParallelLinear layer(linear_options(world, "down"), world.context);
            return layer.forward(scatter_to(x, world.context.tensor), m);
          },
          [](const Cut&, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_linear(p, "down", x); }};
}

Case mlp_case() {
  return {"mlp", 1,
          [](const Cut& cut) {
            std::vector<layout::ParamSpec> params = column_case().params(cut);
            for (layout::ParamSpec& p : row_case().params(cut)) params.push_back(p);
            return params;
          },
          [](const Cut&, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
            return Mlp({linear_options(world, "up"), linear_options(world, "down")}, world.context).forward(x, m);
          },
          [](const Cut&, Tensors& p, const at::Tensor& x, const Microbatch&) {
            return plain_linear(p, "down", at::gelu(plain_linear(p, "up", x), "tanh"));
          }};
}

at::Tensor plain_attention(const Cut& cut, Tensors& p, const at::Tensor& x) {
  const int64_t c = cut.width();
  std::vector<at::Tensor> heads;
  const at::Tensor qkv = plain_linear(p, "qkv", x);
  for (int64_t h = 0; h < cut.heads; ++h) {
    const at::Tensor q = qkv.narrow(2, 2 * h, 2), k = qkv.narrow(2, c + 2 * h, 2), v = qkv.narrow(2, 2 * c + 2 * h, 2);
    const at::Tensor scores = q.matmul(k.transpose(1, 2)).div(std::sqrt(2.0));
    const at::Tensor future = at::full({kTime, kTime}, 1, at::kBool).triu(1);
    heads.push_back(scores.masked_fill(future, -INFINITY).softmax(-1).matmul(v));
  }
  return plain_linear(p, "projection", at::cat(heads, -1));
}

Case attention_case() {
  return {
      "attention", 1,
      [](const Cut& cut) -> std::vector<layout::ParamSpec> {
        const int64_t c = cut.width();
        return {cut.qkv("qkv.weight", {3 * c, c}), cut.qkv("qkv.bias", {3 * c}),
                cut.split("projection.weight", {c, c}, 1), cut.whole("projection.bias", {c})};
      },
      [](const Cut& cut, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
        const Attention layer(
            {linear_options(world, "qkv"), linear_options(world, "projection"), cut.heads / cut.parts}, world.context);
        return layer.forward(x, m);
      },
      [](const Cut& cut, Tensors& p, const at::Tensor& x, const Microbatch&) { return plain_attention(cut, p, x); }};
}

Case layer_norm_case() {
  return {"layer_norm", 1,
          [](const Cut& cut) -> std::vector<layout::ParamSpec> {
            return {cut.whole("ln_1.weight", {cut.width()}), cut.whole("ln_1.bias", {cut.width()})};
          },
          [](const Cut&, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
            return Norm({&world.store["ln_1.weight"], &world.store["ln_1.bias"]}, world.context).forward(x, m);
          },
          [](const Cut& cut, Tensors& p, const at::Tensor& x, const Microbatch&) {
            return at::layer_norm(x, {cut.width()}, p["ln_1.weight"], p["ln_1.bias"], 1e-5);
          }};
}

Case embedding_case() {
  return {"embedding", 0,
          [](const Cut& cut) -> std::vector<layout::ParamSpec> {
            const mesh::Index shape{kVocab, cut.width()};
            return {{"wte.weight",
                     mesh::split_dim(shape, 0, cut.padded_vocab(), {cut.part, cut.parts, mesh::Axis::Tensor})},
                    cut.whole("wpe.weight", {kTime + 2, cut.width()})};
          },
          [](const Cut&, RankWorld& world, const at::Tensor&, const Microbatch& m) {
            const VocabParallelEmbedding layer({&world.store["wte.weight"], 0}, world.context);
            return add_positions_(layer.forward(m), {&world.queue, {&world.store["wpe.weight"], 0}, m.micro});
          },
          [](const Cut&, Tensors& p, const at::Tensor&, const Microbatch& m) {
            const at::Tensor rows = p["wte.weight"].index_select(0, m.tokens_bt.flatten());
            return rows.view({kBatch, kTime, -1}).add(p["wpe.weight"].narrow(0, 0, kTime));
          }};
}

// Logits from a padded table, so that its padded rows must get no gradient.
Case cross_entropy_case() {
  return {"cross_entropy", 1,
          [](const Cut& cut) -> std::vector<layout::ParamSpec> {
            const mesh::Index shape{kVocab, cut.width()};
            return {{"wte.weight",
                     mesh::split_dim(shape, 0, cut.padded_vocab(), {cut.part, cut.parts, mesh::Axis::Tensor})}};
          },
          [](const Cut& cut, RankWorld& world, const at::Tensor& x, const Microbatch& m) {
            const ColumnParallelLinear head({{&world.store["wte.weight"], 0}}, world.context);
            const at::Tensor logits = head.forward(x.mul(20), m);
            return parallel_cross_entropy_(
                logits, m.targets_bt, vocab_range(kVocab, logits.size(-1), world.context.tensor), world.context.tensor);
          },
          [](const Cut&, Tensors& p, const at::Tensor& x, const Microbatch& m) {
            const at::Tensor logits = at::linear(x.mul(20), p["wte.weight"]);
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
    expect_equal(run_parallel(c, n, heads), run_reference(c, heads), 1e-12);
  }
};
INSTANTIATE_TEST_SUITE_P(Ranks, Layers,
                         testing::Values(Size{1, 6}, Size{2, 6}, Size{3, 6}, Size{4, 8}, Size{6, 6}, Size{8, 8}),
                         [](const auto& info) { return std::to_string(info.param.ranks); });

TEST_P(Layers, ColumnParallelLinear) { expect_transparent(column_case()); }
TEST_P(Layers, RowParallelLinear) { expect_transparent(row_case()); }
TEST_P(Layers, Mlp) { expect_transparent(mlp_case()); }
TEST_P(Layers, Attention) { expect_transparent(attention_case()); }
TEST_P(Layers, LayerNorm) { expect_transparent(layer_norm_case()); }
TEST_P(Layers, Embeddings) { expect_transparent(embedding_case()); }
TEST_P(Layers, CrossEntropy) { expect_transparent(cross_entropy_case()); }

}  // namespace
}  // namespace braid::nn::layers_test
