// Parts of a minibatch on several ranks against BatchNorm of the whole: outputs, all gradients, running statistics.
#include "braid/module/sync_batch_norm.h"

#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/linear.h>

#include <functional>
#include <mutex>

#include "braid/base/errors.h"
#include "braid/comm/local/run_ranks.h"

namespace braid::modules::sync_batch_norm_test {
namespace {

using torch::nn::BatchNormOptions;

struct Split {
  std::vector<int64_t> rows;  // of each rank
  std::vector<int64_t> rest;  // features and what follows
  BatchNormOptions options = BatchNormOptions(3);
};

const std::vector<Split> kSplits = {
    {{5, 3}, {3}},
    {{1, 6}, {3, 4}},
    {{2, 4, 3}, {3, 2, 5}},
    {{4, 1, 0, 7}, {3, 2, 3, 2}},  // a rank without rows
    {{1, 1}, {3}},                 // no rank has a variance of its own
    {{5, 2, 2}, {3, 4}, BatchNormOptions(3).momentum(std::optional<double>())},
    {{3, 4}, {3, 4}, BatchNormOptions(3).affine(false).eps(1e-3)},
    {{3, 4}, {3, 4}, BatchNormOptions(3).track_running_stats(false)},
};

int64_t sum(const std::vector<int64_t>& numbers) {
  int64_t all = 0;
  for (const int64_t n : numbers) all += n;
  return all;
}

at::Tensor random(int64_t rows, const std::vector<int64_t>& rest, uint64_t seed) {
  torch::manual_seed(seed);
  std::vector<int64_t> shape{rows};
  shape.insert(shape.end(), rest.begin(), rest.end());
  return at::randn(shape, at::kDouble);
}

// Everything that one or several ranks have after some steps.
struct Result {
  std::vector<at::Tensor> outputs, input_grads;  // by step, all rows
  at::Tensor weight_grad, bias_grad;             // summed over ranks and steps
  at::Tensor running_mean, running_var;          // of the last rank
  int64_t num_batches = 0;
};

constexpr int kSteps = 3;

// Far from zero in the mean, so that a variance formed of sums of squares would lose digits.
at::Tensor inputs(const Split& split, int step) { return random(sum(split.rows), split.rest, 10 + step) * 2 + 1000; }
at::Tensor output_grads(const Split& split, int step) { return random(sum(split.rows), split.rest, 20 + step); }

void add_gradients(Result& result, const BatchNormState& state) {
  if (state.weight.defined()) {
    const bool first = !result.weight_grad.defined();
    result.weight_grad = first ? state.weight.grad().clone() : result.weight_grad + state.weight.grad();
    result.bias_grad = first ? state.bias.grad().clone() : result.bias_grad + state.bias.grad();
  }
  if (!state.running_mean.defined()) return;
  result.running_mean = state.running_mean;
  result.running_var = state.running_var;
  result.num_batches = state.num_batches_tracked.item<int64_t>();
}

// torch's BatchNorm, which is one class but for what it checks; 2-D and 3-D inputs are BatchNorm1d's.
Result whole(const Split& split, at::ScalarType type) {
  Result result;
  const auto steps = [&](auto norm) {
    norm->to(type);
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor x = inputs(split, step).to(type).requires_grad_(true);
      result.outputs.push_back(norm(x));
      result.outputs.back().backward(output_grads(split, step).to(type));
      result.input_grads.push_back(x.grad());
    }
    add_gradients(result, batch_norm_parts(*norm)->state);
  };
  if (split.rest.size() <= 2) steps(torch::nn::BatchNorm1d(split.options));
  if (split.rest.size() == 3) steps(torch::nn::BatchNorm2d(split.options));
  if (split.rest.size() == 4) steps(torch::nn::BatchNorm3d(split.options));
  return result;
}

Result in_parts(const Split& split, at::ScalarType type) {
  const auto num_ranks = static_cast<int>(split.rows.size());
  std::vector<std::vector<at::Tensor>> outputs(kSteps), input_grads(kSteps);
  for (auto* parts : {&outputs, &input_grads}) {
    for (auto& part : *parts) part.resize(split.rows.size());
  }
  std::vector<at::Tensor> all_x, all_grads;  // made here: ranks would share the generator
  for (int step = 0; step < kSteps; ++step) {
    all_x.push_back(inputs(split, step).to(type));
    all_grads.push_back(output_grads(split, step).to(type));
  }
  std::vector<std::unique_ptr<SyncBatchNorm>> norms(split.rows.size());
  run_ranks(num_ranks, [&](Communicator& group) {
    const auto rank = static_cast<size_t>(group.rank());
    norms[rank] = std::make_unique<SyncBatchNorm>(split.options, group);
    SyncBatchNorm& norm = *norms[rank];
    norm->to(type);
    const int64_t begin = sum({split.rows.begin(), split.rows.begin() + group.rank()}), rows = split.rows[rank];
    for (int step = 0; step < kSteps; ++step) {
      const at::Tensor x = all_x[step].narrow(0, begin, rows).clone().requires_grad_(true);
      outputs[step][rank] = norm(x);
      outputs[step][rank].backward(all_grads[step].narrow(0, begin, rows));
      input_grads[step][rank] = x.grad();
    }
  });
  Result result;
  for (int step = 0; step < kSteps; ++step) {
    result.outputs.push_back(at::cat(outputs[step]));
    result.input_grads.push_back(at::cat(input_grads[step]));
  }
  for (const auto& norm : norms) add_gradients(result, (*norm)->state());
  return result;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.to(at::kDouble) - b.to(at::kDouble)).abs().max().item<double>();
}

void expect_alike(const Result& parts, const Result& whole, double tolerance) {
  for (int step = 0; step < kSteps; ++step) {
    EXPECT_LT(distance(parts.outputs[step], whole.outputs[step]), tolerance) << step;
    EXPECT_LT(distance(parts.input_grads[step], whole.input_grads[step]), tolerance) << step;
  }
  ASSERT_EQ(parts.weight_grad.defined(), whole.weight_grad.defined());
  if (whole.weight_grad.defined()) {
    EXPECT_LT(distance(parts.weight_grad, whole.weight_grad), tolerance);
    EXPECT_LT(distance(parts.bias_grad, whole.bias_grad), tolerance);
  }
  ASSERT_EQ(parts.running_mean.defined(), whole.running_mean.defined());
  if (!whole.running_mean.defined()) return;
  EXPECT_LT(distance(parts.running_mean, whole.running_mean), 1000 * tolerance);
  EXPECT_LT(distance(parts.running_var, whole.running_var), 1000 * tolerance);
  EXPECT_EQ(parts.num_batches, whole.num_batches);
}

TEST(SyncBatchNorm, PartsOnRanksAreTheWholeBatch) {
  for (const Split& split : kSplits) {
    SCOPED_TRACE(::testing::PrintToString(split.rows) + " rows of " + ::testing::PrintToString(split.rest));
    expect_alike(in_parts(split, at::kDouble), whole(split, at::kDouble), 1e-10);
  }
}

TEST(SyncBatchNorm, ComputesInFloat32) {
  for (const Split& split : kSplits) {
    if (split.rows == std::vector<int64_t>{1, 1}) continue;  // two values about 1000: float32 has few digits left
    SCOPED_TRACE(::testing::PrintToString(split.rows) + " rows of " + ::testing::PrintToString(split.rest));
    const Result exact = whole(split, at::kDouble), single = in_parts(split, at::kFloat);
    EXPECT_EQ(single.outputs[0].scalar_type(), at::kFloat);
    expect_alike(single, exact, 2e-3);
  }
}

TEST(SyncBatchNorm, RunningStatisticsAreTheSameBitsOnAllRanks) {
  std::vector<at::Tensor> means(3), variances(3);
  run_ranks(3, [&](Communicator& group) {
    SyncBatchNorm norm(BatchNormOptions(3), group);
    norm(random(2 + group.rank(), {3, 4}, 40 + group.rank()).to(at::kFloat));
    means[group.rank()] = norm->state().running_mean;
    variances[group.rank()] = norm->state().running_var;
  });
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_TRUE(means[rank].equal(means[0]));
    EXPECT_TRUE(variances[rank].equal(variances[0]));
  }
}

TEST(SyncBatchNorm, EvaluationExchangesNothing) {
  run_ranks(2, [&](Communicator& group) {
    SyncBatchNorm norm(BatchNormOptions(3), group);
    norm(random(4, {3}, 1).to(at::kFloat));
    norm->eval();
    if (group.rank() == 1) return;  // the other rank does not wait for this one
    const auto& state = norm->state();
    const at::Tensor x = random(4, {3}, 2).to(at::kFloat);
    const at::Tensor expected = (x - state.running_mean) / (state.running_var + 1e-5).sqrt();
    EXPECT_LT(distance(norm(x), expected), 1e-5);
  });
}

// A module of a type of its own, with elements that can be replaced.
struct TailImpl : torch::nn::Module {
  torch::nn::Sequential inner =
      register_module("inner", torch::nn::Sequential(torch::nn::BatchNorm1d(5), torch::nn::Linear(5, 2)));
  at::Tensor forward(at::Tensor x) { return inner->forward(x); }
};
TORCH_MODULE(Tail);

torch::nn::Sequential small_network() {
  torch::manual_seed(3);
  using namespace torch::nn;
  Sequential network(
      {{"norm", AnyModule(BatchNorm1d(4))}, {"fc", AnyModule(Linear(4, 5))}, {"tail", AnyModule(Tail())}});
  network->to(at::kDouble);
  return network;
}

// The loss is a sum over rows, so gradients of parts add up.
TEST(SyncBatchNorm, AConvertedNetworkTrainsAsTheWhole) {
  const at::Tensor x = random(9, {4}, 4);
  const auto step = [](torch::nn::Sequential& network, const at::Tensor& rows) {
    network->forward(rows).square().sum().backward();
  };
  auto expected = small_network();
  step(expected, x);
  std::vector<torch::nn::Sequential> networks{small_network(), small_network()};
  run_ranks(2, [&](Communicator& group) {
    auto& network = networks[group.rank()];
    const at::Tensor weight = network->named_parameters()["norm.weight"];
    EXPECT_TRUE(sync_batch_norms(*network, group).empty());
    EXPECT_TRUE(network->named_parameters()["norm.weight"].is_same(weight));
    step(network, group.rank() == 0 ? x.narrow(0, 0, 2) : x.narrow(0, 2, 7));
  });
  for (const auto& item : expected->named_parameters()) {
    const auto grad = [&](int rank) { return networks[rank]->named_parameters()[item.key()].grad(); };
    EXPECT_LT(distance(grad(0) + grad(1), item.value().grad()), 1e-10) << item.key();
  }
  for (const auto& item : expected->named_buffers()) {
    EXPECT_LT(distance(networks[1]->named_buffers()[item.key()], item.value()), 1e-10) << item.key();
  }
}

struct BlockImpl : torch::nn::Module {
  torch::nn::BatchNorm1d norm = register_module("norm", torch::nn::BatchNorm1d(4));
  torch::nn::Sequential inner = register_module("inner", torch::nn::Sequential(torch::nn::BatchNorm1d(4)));
  at::Tensor forward(at::Tensor x) { return inner->forward(norm(x)); }
};
TORCH_MODULE(Block);

TEST(SyncBatchNorm, NamesTheNormsItCannotReach) {
  run_ranks(1, [&](Communicator& group) {
    torch::nn::Sequential network({{"block", torch::nn::AnyModule(Block())}});
    network->eval();
    EXPECT_EQ(sync_batch_norms(*network, group), std::vector<std::string>{"block.norm"});
    const auto modules = network->named_modules("", false);
    const auto replaced = std::dynamic_pointer_cast<SyncBatchNormImpl>(modules["block.inner.0"]);
    ASSERT_TRUE(replaced);
    EXPECT_FALSE(replaced->is_training()) << "the mode is kept";
    torch::nn::BatchNorm1d alone(4);
    EXPECT_EQ(sync_batch_norms(*alone, group).size(), 1u);
  });
}

TEST(SyncBatchNorm, RefusesOtherInputs) {
  run_ranks(1, [&](Communicator& group) {
    SyncBatchNorm norm(BatchNormOptions(3), group);
    EXPECT_THROW(norm(at::ones({4, 2})), ConfigError);
    EXPECT_THROW(norm(at::ones({3})), ConfigError);
    EXPECT_THROW(norm(at::ones({4, 3}, at::kDouble)), ConfigError) << "the module is float32";
    EXPECT_THROW(norm(at::ones({1, 3})), ConfigError) << "one value has no variance";
    const at::Tensor x = random(4, {3}, 1).to(at::kFloat).requires_grad_(true);
    EXPECT_THROW(torch::autograd::grad({norm(x).sum()}, {x}, {}, true, true), ConfigError);
  });
}

}  // namespace
}  // namespace braid::modules::sync_batch_norm_test
