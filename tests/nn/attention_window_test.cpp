// Attention with a window against all scores under a mask, whatever the window is to the sequence; and a second run.
#include <ATen/ops/matmul.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/softmax.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cmath>

#include "braid/nn/attention.h"
#include "tests/nn/formula_values.h"

namespace braid::nn::attention_window_test {
namespace {

constexpr int64_t kBatch = 2, kTokens = 11, kHeads = 4, kKeyHeads = 2, kWidth = 6;

at::Tensor rows() {
  const at::Tensor x = formula_tensor("qkv", {kBatch, kTokens, (kHeads + 2 * kKeyHeads) * kWidth}).mul(4);
  return x.to(at::kDouble).requires_grad_(true);
}

at::Tensor under_a_mask(const at::Tensor& qkv_btf, int64_t window) {
  const auto parts =
      qkv_btf.view({kBatch, kTokens, -1, kWidth}).transpose(1, 2).split_with_sizes({kHeads, kKeyHeads, kKeyHeads}, 1);
  const auto shared = [](const at::Tensor& x) { return x.repeat_interleave(kHeads / kKeyHeads, 1); };
  const at::Tensor hidden = at::ones({kTokens, kTokens}, at::kBool).triu(1 - window).tril().logical_not();
  const at::Tensor scores = at::matmul(parts[0], shared(parts[1]).transpose(2, 3)).div(std::sqrt(double{kWidth}));
  const at::Tensor shares = at::softmax(scores.masked_fill(hidden, -INFINITY), -1);
  return at::matmul(shares, shared(parts[2])).transpose(1, 2).reshape({kBatch, kTokens, -1});
}

TEST(AttentionWindow, SeesItsTokensAndNoOthers) {
  for (int64_t window = 1; window <= kTokens + 1; ++window) {
    for (const Keep keep : {Keep::Everything, Keep::Selected}) {
      const at::Tensor x = rows(), y = rows();
      const at::Tensor got = attention_core(x, {kHeads, kKeyHeads, {}, keep, window}).value;
      const at::Tensor want = under_a_mask(y, window);
      EXPECT_LT(got.sub(want).abs().max().item<double>(), 1e-13) << window;
      const at::Tensor dy = formula_tensor("dy", got.sizes().vec()).to(at::kDouble);
      const at::Tensor dx = torch::autograd::grad({got}, {x}, {dy})[0];
      const at::Tensor expected = torch::autograd::grad({want}, {y}, {dy})[0];
      EXPECT_LT(dx.sub(expected).abs().max().item<double>(), 1e-13) << window;
    }
  }
}

TEST(AttentionWindow, OfTheSequenceIsNone) {
  const at::Tensor x = rows();
  const at::Tensor all = attention_core(x, {kHeads, kKeyHeads, {}, Keep::Everything, 0}).value;
  EXPECT_TRUE(attention_core(x, {kHeads, kKeyHeads, {}, Keep::Everything, kTokens}).value.equal(all));
}

}  // namespace
}  // namespace braid::nn::attention_window_test
