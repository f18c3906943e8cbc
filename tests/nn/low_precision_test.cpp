// Layers on bfloat16 and float16: numbers near float64's on the same operands, gradients of weights in float32.
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/linear.h"
#include "braid/nn/regions.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::low_precision_test {
namespace {

class LowPrecision : public testing::TestWithParam<at::ScalarType> {
 protected:
  // Returns the error of one rounding.
  double epsilon() const { return GetParam() == at::kHalf ? 5e-4 : 4e-3; }
  at::Tensor input(const char* name, at::IntArrayRef shape) const {
    return formula_tensor(name, shape).to(GetParam()).requires_grad_();
  }
};
INSTANTIATE_TEST_SUITE_P(Types, LowPrecision, testing::Values(at::kBFloat16, at::kHalf),
                         [](const auto& info) { return std::string(c10::toString(info.param)); });

TEST_P(LowPrecision, LinearLeavesUnroundedGradients) {
  run_ranks(1, [&](Communicator& group) {
    RankWorld world({{"layer", {{"up.weight", mesh::replicated({33, 20})}, {"up.bias", mesh::replicated({33})}}}},
                    group, GetParam());
    const param::Parameter &weight = world.store["up.weight"], &bias = world.store["up.bias"];
    world.sink->begin_step(2);
    at::Tensor exact_weight, exact_bias;
    for (int micro = 0; micro < 2; ++micro) {
      const at::Tensor x = input(micro == 0 ? "x0" : "x1", {3, 7, 20}), dy = input("dy", {3, 7, 33}).detach();
      const at::Tensor y = linear(x, {{&weight, 0}, &bias, &world.queue, micro});
      EXPECT_EQ(y.scalar_type(), GetParam());
      y.backward(dy);
      world.queue.run(micro);
      const at::Tensor x_ni = x.detach().to(at::kDouble).view({21, 20}), dy_no = dy.to(at::kDouble).view({21, 33});
      const at::Tensor w = weight.data.detach().to(at::kDouble), b = bias.data.detach().to(at::kDouble);
      EXPECT_LT(relative_error(y.view({21, 33}), at::linear(x_ni, w, b)), epsilon());
      EXPECT_LT(relative_error(x.grad().view({21, 20}), dy_no.mm(w)), epsilon());
      exact_weight = micro == 0 ? dy_no.t().mm(x_ni) : exact_weight.add(dy_no.t().mm(x_ni));
      exact_bias = micro == 0 ? dy_no.sum(0) : exact_bias.add(dy_no.sum(0));
    }
    EXPECT_EQ(weight.main_grad.scalar_type(), at::kFloat);
    EXPECT_LT(relative_error(weight.main_grad, exact_weight), 1e-6);
    EXPECT_LT(relative_error(bias.main_grad, exact_bias), 1e-6);
  });
}

TEST_P(LowPrecision, EmbeddingAddsRepeatedTokensInFloat32) {
  run_ranks(2, [&](Communicator& group) {
    const mesh::Placement rows = mesh::split_dim({8, 3}, 0, 8, {group.rank(), 2, mesh::Axis::Tensor});
    RankWorld world({{"embedding", {{"wte.weight", rows}}}}, group, GetParam());
    Microbatch m;
    m.tokens_bt = at::full({1, 1500}, 5, at::kLong);  // more ones than either type counts
    world.sink->begin_step(1);
    const at::Tensor y = reduce_from_(lookup({&world.store["wte.weight"], 0}, 0, world.context, m), group);
    EXPECT_EQ(y.scalar_type(), GetParam());
    y.backward(at::full({1, 1500, 3}, 1.5, GetParam()));
    world.queue.run_all();
    const at::Tensor& gradient = world.store["wte.weight"].main_grad;
    EXPECT_EQ(gradient.sum().item<double>(), group.rank() == 1 ? 3 * 2250 : 0);
    EXPECT_EQ(gradient[1][0].item<double>(), group.rank() == 1 ? 2250 : 0);
  });
}

TEST_P(LowPrecision, DropoutKeepsTypeAndMask) {
  Microbatch m;
  m.dropout_key = 7;
  const at::Tensor x = at::ones({100, 100}, GetParam()).requires_grad_(), exact = at::ones({100, 100}, at::kDouble);
  const Dropout dropout({0.2, 1, 0});
  const at::Tensor y = dropout.forward(x, m);
  EXPECT_TRUE(y.equal(dropout.forward(exact, m).to(GetParam()))) << "the mask depends on the type";
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(y));
}

TEST_P(LowPrecision, RegionsSumInFloat32) {
  run_ranks(3, [&](Communicator& group) {
    // 256 + 1 + 1 (2048 in float16) is lost when it is rounded after each addition.
    const double large = GetParam() == at::kHalf ? 2048 : 256;
    const at::Tensor x = at::full({4}, group.rank() == 0 ? large : 1, GetParam()).requires_grad_();
    const at::Tensor y = reduce_from_(x.clone(), group);
    EXPECT_TRUE(y.eq(large + 2).all().item<bool>());
    copy_to(x, group, GetParam()).backward(at::full({4}, group.rank() == 0 ? large : 1, GetParam()));
    EXPECT_TRUE(x.grad().eq(large + 2).all().item<bool>());
  });
}

}  // namespace
}  // namespace braid::nn::low_precision_test
