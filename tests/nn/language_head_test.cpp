// The head's loss, whole and in chunks, against composed operations in float64; what chunks promise beyond numbers.
#include "braid/nn/language_head.h"

#include <ATen/ops/full_like.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>

#include "braid/base/errors.h"
#include "braid/nn/regions.h"
#include "tests/nn/rank_world.h"

namespace braid::nn::language_head_test {
namespace {

using Tensors = std::map<std::string, at::Tensor>;
constexpr int64_t kBatch = 2, kTime = 5, kWidth = 6, kVocab = 19;
constexpr int kMicrobatches = 2;
constexpr double kSeed = 0.75;

struct HeadRun {
  int ranks = 1;
  int64_t chunk_rows = kBatch * kTime;
  at::ScalarType dtype = at::kDouble;
};

// Logits of a few units.
at::Tensor input_of(int micro, at::ScalarType dtype) {
  return formula_tensor("x" + std::to_string(micro), {kBatch, kTime, kWidth}).mul_(16).to(dtype);
}

Microbatch microbatch_of(int micro) {
  Microbatch m;
  m.micro = micro;
  m.targets_bt = formula_integers("targets" + std::to_string(micro), {kBatch, kTime}, kVocab);
  m.loss_gradient = kSeed;
  return m;
}

struct HeadWorld {
  HeadWorld(const HeadRun& run, Communicator& group)
      : world({{"head", {table(run, group.rank())}}}, group, run.dtype), head(options(run), world.context) {}

  static layout::ParamSpec table(const HeadRun& run, int rank) {
    const int64_t padded = (kVocab + run.ranks - 1) / run.ranks * run.ranks;
    return {"wte.weight", mesh::split_dim({kVocab, kWidth}, 0, padded, {rank, run.ranks, mesh::Axis::Tensor})};
  }
  LanguageHead::Options options(const HeadRun& run) {
    const at::Tensor& weight = world.store["wte.weight"].data;
    return {{&world.store["wte.weight"], 0}, kVocab, run.chunk_rows * weight.size(0) * weight.element_size()};
  }

  RankWorld world;
  LanguageHead head;
};

Tensors run_head(const HeadRun& run) {
  Gathering results(run.ranks);
  run_ranks(run.ranks, [&](Communicator& group) {
    HeadWorld w(run, group);
    w.world.sink->begin_step(kMicrobatches);
    for (int micro = 0; micro < kMicrobatches; ++micro) {
      const at::Tensor x = input_of(micro, run.dtype).requires_grad_();
      const at::Tensor loss = w.head.forward(copy_to(x, group, x.scalar_type()), microbatch_of(micro));
      EXPECT_EQ(loss.scalar_type(), run.dtype == at::kDouble ? at::kDouble : at::kFloat);
      loss.backward(at::full_like(loss, kSeed));
      w.world.queue.run(micro);
      results.put_replicated("loss" + std::to_string(micro), group.rank(), loss);
      results.put_replicated("dx" + std::to_string(micro), group.rank(), x.grad());
    }
    results.put_gradients(group.rank(), w.world);
  });
  return results.global();
}

// With operands of `dtype`, computed in `math` by composed operations.
Tensors run_composed(at::ScalarType dtype, at::ScalarType math) {
  const at::Tensor weight = formula_parameter("wte.weight", {kVocab, kWidth}).to(dtype).to(math).requires_grad_();
  Tensors results;
  for (int micro = 0; micro < kMicrobatches; ++micro) {
    const at::Tensor x = input_of(micro, dtype).to(math).requires_grad_();
    const at::Tensor targets_bt1 = microbatch_of(micro).targets_bt.unsqueeze(-1);
    const at::Tensor loss = at::log_softmax(at::linear(x, weight), -1).gather(-1, targets_bt1).mean().neg();
    loss.backward(at::full_like(loss, kSeed));
    results["loss" + std::to_string(micro)] = loss.detach();
    results["dx" + std::to_string(micro)] = x.grad();
  }
  results["grad.wte.weight"] = weight.grad();
  return results;
}

class Head : public testing::TestWithParam<std::tuple<int, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(RanksChunks, Head,
                         testing::Combine(testing::Values(1, 2, 3, 20), testing::Values<int64_t>(1, 3, 7, 10)));

TEST_P(Head, IsExactInFloat64) {
  const auto [ranks, chunk_rows] = GetParam();
  expect_equal(run_head({ranks, chunk_rows}), run_composed(at::kDouble, at::kDouble), 1e-13);
}

class LowPrecisionHead : public testing::TestWithParam<std::tuple<at::ScalarType, int64_t>> {};
INSTANTIATE_TEST_SUITE_P(TypesChunks, LowPrecisionHead,
                         testing::Combine(testing::Values(at::kBFloat16, at::kHalf), testing::Values<int64_t>(3, 10)));

TEST_P(LowPrecisionHead, IsAtLeastAsExactAsComposedOperations) {
  const auto [dtype, chunk_rows] = GetParam();
  const Tensors exact = run_composed(dtype, at::kDouble), composed = run_composed(dtype, dtype);
  const Tensors ours = run_head({1, chunk_rows, dtype});
  for (const auto& [name, tensor] : exact) {
    const double error = relative_error(ours.at(name), tensor);
    EXPECT_LE(error, relative_error(composed.at(name), tensor)) << name;
    EXPECT_LT(error, dtype == at::kHalf ? 2e-3 : 1e-2) << name;
  }
  const Tensors parallel = run_head({2, chunk_rows, dtype});
  for (const auto& [name, tensor] : exact) {
    EXPECT_LT(relative_error(parallel.at(name), tensor), dtype == at::kHalf ? 2e-3 : 1e-2) << name;
  }
}

void alone(const HeadRun& run, const std::function<void(HeadWorld&)>& body) {
  run_ranks(1, [&](Communicator& group) {
    HeadWorld w(run, group);
    w.world.sink->begin_step(1);
    body(w);
  });
}

TEST(HeadInChunks, WritesTheWeightsGradientInForwardAndQueuesNothing) {
  alone({1, 3}, [](HeadWorld& w) {
    int ready = 0;
    w.world.sink->on_ready = [&](const param::Parameter&) { ++ready; };
    const at::Tensor loss = w.head.forward(input_of(0, at::kDouble).requires_grad_(), microbatch_of(0));
    EXPECT_FALSE(w.world.store["wte.weight"].main_grad.isnan().any().item<bool>());
    EXPECT_EQ(ready, 1);
    loss.backward(at::full_like(loss, kSeed));
    EXPECT_EQ(w.world.queue.pending(), 0);
  });
}

TEST(HeadInChunks, RefusesAnotherSeedThanTheOneAnnounced) {
  alone({1, 3}, [](HeadWorld& w) {
    const at::Tensor loss = w.head.forward(input_of(0, at::kDouble).requires_grad_(), microbatch_of(0));
    EXPECT_THROW(loss.backward(), InternalError);
  });
}

TEST(HeadInOnePiece, TakesAnySeedAndOneBackward) {
  alone({}, [](HeadWorld& w) {
    const at::Tensor loss = w.head.forward(input_of(0, at::kDouble).requires_grad_(), microbatch_of(0));
    EXPECT_TRUE(w.world.store["wte.weight"].main_grad.isnan().all().item<bool>()) << "written before the queue ran";
    loss.backward({}, /*retain_graph=*/true);
    EXPECT_EQ(w.world.queue.pending(), 1);
    EXPECT_THROW(loss.backward(), InternalError);
  });
}

TEST(HeadWithoutGradients, GivesTheSameLossAndOpensNoSlot) {
  at::Tensor whole;
  for (const int64_t chunk_rows : {kBatch * kTime, int64_t{1}}) {
    alone({1, chunk_rows}, [&](HeadWorld& w) {
      const at::NoGradGuard no_grad;
      const at::Tensor loss = w.head.forward(input_of(0, at::kDouble), microbatch_of(0));
      if (!whole.defined()) whole = loss;
      EXPECT_TRUE(loss.allclose(whole, 1e-14));
      EXPECT_FALSE(loss.requires_grad());
      EXPECT_TRUE(w.world.store["wte.weight"].main_grad.isnan().all().item<bool>());
    });
  }
}

TEST(HeadWithoutInputGradient, HasTheWeightsOfOneThatHasIt) {
  for (const int64_t chunk_rows : {kBatch * kTime, int64_t{3}}) {
    std::vector<at::Tensor> gradients;
    for (const bool of_input : {true, false}) {
      alone({1, chunk_rows}, [&](HeadWorld& w) {
        const at::Tensor x = input_of(0, at::kDouble).requires_grad_(of_input);
        const at::Tensor loss = w.head.forward(x, microbatch_of(0));
        loss.backward(at::full_like(loss, kSeed));
        w.world.queue.run_all();
        gradients.push_back(w.world.store["wte.weight"].main_grad.clone());
      });
    }
    EXPECT_TRUE(gradients[1].equal(gradients[0])) << "in chunks of " << chunk_rows;
  }
}

}  // namespace
}  // namespace braid::nn::language_head_test
