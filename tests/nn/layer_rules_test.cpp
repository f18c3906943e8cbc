// The guarantees of single layers beyond their numbers: dropout's mask, the loss's buffer, the queue's silence, same
// bits.
#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>

#include "braid/base/errors.h"
#include "braid/nn/attention.h"
#include "braid/nn/cross_entropy.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/linear.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::layer_rules_test {
namespace {

void alone(const std::function<void(Communicator&)>& body) { run_ranks(1, body); }

TEST(Dropout, KeepsTheStatedShareScaledAndItsGradientHasTheSameMask) {
  Microbatch m;
  m.dropout_key = 7;
  const at::Tensor x = at::ones({100, 100}, at::kDouble).requires_grad_();
  const Dropout dropout({0.2, 1, 0});
  const at::Tensor y = dropout.forward(x, m);
  EXPECT_TRUE(y.eq(0).logical_or(y.eq(1.25)).all().item<bool>());
  EXPECT_NEAR(y.mean().item<double>(), 1, 0.02);
  y.sum().backward();
  EXPECT_TRUE(x.grad().equal(y));
  EXPECT_TRUE(dropout.forward(x, m).equal(y));
  EXPECT_FALSE(Dropout({0.2, 1, 1}).forward(x, m).equal(y));
  EXPECT_FALSE(Dropout({0.2, 2, 0}).forward(x, m).equal(y));
  EXPECT_FALSE(Dropout({0.2, 0, 16}).forward(x, m).equal(y)) << "a seventeenth dropout of the block before";
  m.dropout_key = 8;
  EXPECT_FALSE(dropout.forward(x, m).equal(y));
  m.training = false;
  EXPECT_TRUE(dropout.forward(x, m).is_same(x));
  EXPECT_TRUE(Dropout({0, 1, 0}).forward(x, m).is_same(x));
}

TEST(CrossEntropy, SurvivesHugeLogitsAndManyRows) {
  alone([](Communicator& group) {
    const at::Tensor logits = formula_tensor("x", {7 * 31, 1000}).mul_(1e4).to(at::kFloat);
    const at::Tensor x = logits.to(at::kDouble).requires_grad_(), targets = formula_integers("y", {7 * 31}, 1000);
    LossRows rows = cross_entropy_rows(logits, targets, {1000, 0, 1000}, group);
    const at::Tensor loss = mean_loss(rows.loss_n);
    rows.gradient.step = at::full({}, 1.0 / (7 * 31), at::kFloat);
    kernels::softmax_gradient_(logits, rows.gradient);
    const at::Tensor expected = x.log_softmax(-1).gather(-1, targets.unsqueeze(-1)).mean().neg();
    expected.backward();
    EXPECT_LT(relative_error(loss, expected), 1e-6);
    EXPECT_LT(relative_error(logits, x.grad()), 1e-6);
  });
}

TEST(CrossEntropy, RefusesTargetsOutsideTheVocabulary) {
  for (const int64_t wrong : {int64_t{4}, int64_t{-1}}) {
    EXPECT_THROW(checked_targets(at::full({1, 2}, wrong, at::kLong), {4, 0, 4}), InternalError);
  }
}

TEST(Embedding, RefusesTokensOutsideTheTable) {
  alone([](Communicator& group) {
    RankWorld world({{"embedding", {{"wte.weight", mesh::replicated({5, 4})}}}}, group);
    Microbatch m;
    m.tokens_bt = at::full({1, 2}, 5, at::kLong);
    EXPECT_THROW(lookup({&world.store["wte.weight"], 0}, 0, world.context, m), InternalError);
  });
}

TEST(Linear, QueuesOneEntryPerParameterAndNothingWithoutGradients) {
  alone([](Communicator& group) {
    RankWorld world({{"layer", {{"up.weight", mesh::replicated({6, 4})}, {"up.bias", mesh::replicated({6})}}}}, group);
    const LinearCall call{{&world.store["up.weight"], 0}, &world.store["up.bias"], &world.queue, 0};
    const at::Tensor x = formula_tensor("x", {2, 3, 4});  // needs no gradient itself
    const at::Tensor y = linear(x, call);
    EXPECT_EQ(world.queue.pending(), 0);
    y.sum().backward();
    EXPECT_EQ(world.queue.pending(), 2);
    EXPECT_TRUE(world.store["up.weight"].main_grad.isnan().all().item<bool>()) << "written before the queue ran";
    const at::NoGradGuard no_grad;
    EXPECT_FALSE(linear(x, call).requires_grad());
  });
}

TEST(Linear, NoticesAWeightChangedBetweenForwardAndBackward) {
  alone([](Communicator& group) {
    RankWorld world({{"layer", {{"up.weight", mesh::replicated({6, 4})}}}}, group);
    const at::Tensor x = formula_tensor("x", {3, 4}).requires_grad_();
    const at::Tensor y = linear(x, {{&world.store["up.weight"], 0}, nullptr, &world.queue, 0});
    {
      const at::NoGradGuard no_grad;
      world.store["up.weight"].data.add_(1);
    }
    EXPECT_THROW(y.sum().backward(), std::exception);
  });
}

TEST(Linear, MakesItsInputAgainInBackwardOnceAndLetsGoOfHow) {
  alone([](Communicator& group) {
    RankWorld world({{"layer", {{"up.weight", mesh::replicated({6, 4})}}}}, group);
    world.sink->begin_step(2);
    const auto step = [&](int micro, const Activation& x) {
      linear(x, {{&world.store["up.weight"], 0}, nullptr, &world.queue, micro}).sum().backward();
    };
    const at::Tensor kept = formula_tensor("x", {2, 3, 4});
    const auto calls = std::make_shared<int>(0);
    // Spoils the inputs of forward before backward: only recomputed values count.
    const at::Tensor passing = kept.clone();
    const Activation made{passing, [kept, calls] {
                            ++*calls;
                            return kept;
                          }};
    const at::Tensor y = linear(made, {{&world.store["up.weight"], 0}, nullptr, &world.queue, 0});
    EXPECT_EQ(calls.use_count(), 3) << "ours, made's, the graph's";
    passing.zero_();
    y.sum().backward({}, /*retain_graph=*/true);
    EXPECT_EQ(*calls, 1);
    EXPECT_EQ(calls.use_count(), 2);
    EXPECT_THROW(y.sum().backward(), InternalError);
    world.queue.run(0);
    const at::Tensor first = world.store["up.weight"].main_grad.clone();
    step(1, kept);
    world.queue.run(1);
    EXPECT_TRUE(world.store["up.weight"].main_grad.equal(first.mul(2)));
  });
}

// Two threads: the kernel splits the heads over them.
TEST(Attention, GivesTheSameBitsEveryTime) {
  const int before = at::get_num_threads();
  at::set_num_threads(2);
  const auto run = [&] {
    const at::Tensor qkv = formula_tensor("x", {4, 200, 96}).to(at::kFloat).requires_grad_();
    attention_core(qkv, {.heads = 4, .kv_heads = 4}).value.square().sum().backward();
    return qkv.grad();
  };
  const at::Tensor first = run();
  for (int repeat = 0; repeat < 5; ++repeat) EXPECT_TRUE(run().equal(first));
  at::set_num_threads(before);
}

}  // namespace
}  // namespace braid::nn::layer_rules_test
