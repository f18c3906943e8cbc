// A forward over cached keys and values gives what a forward over everything gives: models of both families, sequences
// of several lengths side by side, in float64, float32 and bfloat16.
#include <ATen/ops/cat.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/cached_attention.h"
#include "braid/nn/kernels/generation_rows.h"
#include "braid/nn/kernels/processor.h"
#include "braid/nn/kernels/product.h"
#include "tests/nn/model_run.h"

namespace braid::nn::cached_generation_test {
namespace {

struct CachedCase {
  std::string name;
  ModelSpec spec;
  at::ScalarType dtype;
  double tolerance;
};

std::vector<CachedCase> cached_cases() {
  ModelSpec untied = tiny_gpt2();
  untied.output_weights = OutputWeights::Untied;
  std::vector<CachedCase> all;
  for (const auto& [dtype, tolerance] : {std::pair(at::kDouble, 1e-12), {at::kFloat, 1e-5}, {at::kBFloat16, 5e-2}}) {
    for (const auto& [name, spec] : {std::pair("gpt2", tiny_gpt2()),
                                     {"untied gpt2", untied},
                                     {"llama", tiny_llama()},
                                     {"llama3", tiny_llama3()}}) {
      all.push_back({cat(name, " ", c10::toString(dtype)), spec, dtype, tolerance});
    }
  }
  for (CachedCase& one : all) one.spec.context = 40;  // several blocks of keys
  return all;
}

at::Tensor tokens_of(const ModelSpec& spec, int sequence) {
  return formula_integers("tokens" + std::to_string(sequence), {1, spec.context}, spec.vocab);
}

at::Tensor forward(RunModel& model, const at::Tensor& tokens_bt, KeyValueCache* cache = nullptr) {
  Microbatch m;
  m.training = false;
  m.tokens_bt = tokens_bt;
  m.cache = cache;
  return model.forward(m);
}

// Logits of the last token of the first `count` of a sequence, by a forward over all of them.
at::Tensor uncached(RunModel& model, const at::Tensor& tokens_bt, int64_t count) {
  return forward(model, tokens_bt.narrow(1, 0, count)).select(1, count - 1);
}

at::Tensor cached(RunModel& model, KeyValueCache& cache, const at::Tensor& tokens_bt, std::vector<int64_t> sequences) {
  std::vector<KeyValueCache::Stretch> stretches;
  for (const int64_t sequence : sequences) stretches.push_back({sequence, tokens_bt.size(1)});
  cache.begin(std::move(stretches));
  const at::Tensor logits = forward(model, tokens_bt, &cache).select(1, 0);
  cache.end();
  return logits;
}

TEST(CachedGeneration, GivesTheLogitsOfAForwardOverEverything) {
  for (const CachedCase& one : cached_cases()) {
    SCOPED_TRACE(one.name);
    run_ranks(1, [&](Communicator& world) {
      const at::NoGradGuard no_grad;
      RunModel model({one.spec, 1, one.dtype}, world);
      KeyValueCache cache(3, one.spec.context);
      const std::vector<int64_t> prompts = {1, 17, 30};
      for (const int64_t s : {0, 1, 2}) {
        const at::Tensor tokens = tokens_of(one.spec, static_cast<int>(s));
        EXPECT_LT(relative_error(cached(model, cache, tokens.narrow(1, 0, prompts[s]), {s}),
                                 uncached(model, tokens, prompts[s])),
                  one.tolerance);
      }
      for (int64_t step = 0; step < 10; ++step) {  // side by side, in another order than they are cached in
        std::vector<at::Tensor> next, expected;
        for (const int64_t s : {2, 0, 1}) {
          const at::Tensor tokens = tokens_of(one.spec, static_cast<int>(s));
          next.push_back(tokens.narrow(1, prompts[s] + step, 1));
          expected.push_back(uncached(model, tokens, prompts[s] + step + 1));
        }
        EXPECT_LT(relative_error(cached(model, cache, at::cat(next), {2, 0, 1}), at::cat(expected)), one.tolerance);
      }
    });
  }
}

// Packed one behind another: beginnings of sequences, one of a single token, and tokens behind what is cached.
TEST(CachedGeneration, StretchesOfUnequalLengthAreReadTogether) {
  for (const CachedCase& one : cached_cases()) {
    SCOPED_TRACE(one.name);
    run_ranks(1, [&](Communicator& world) {
      const at::NoGradGuard no_grad;
      RunModel model({one.spec, 1, one.dtype}, world);
      KeyValueCache cache(4, one.spec.context);
      const std::vector<int64_t> before = {0, 9, 0, 0}, counts = {17, 5, 1, 30};
      cached(model, cache, tokens_of(one.spec, 1).narrow(1, 0, before[1]), {1});
      std::vector<at::Tensor> tokens, expected;
      std::vector<KeyValueCache::Stretch> stretches;
      for (const int64_t s : {3, 1, 2, 0}) {
        const at::Tensor all = tokens_of(one.spec, static_cast<int>(s));
        tokens.push_back(all.narrow(1, before[s], counts[s]));
        expected.push_back(uncached(model, all, before[s] + counts[s]));
        stretches.push_back({s, counts[s]});
      }
      cache.begin(std::move(stretches));
      const at::Tensor logits = forward(model, at::cat(tokens, 1), &cache).select(1, 0);
      cache.end();
      EXPECT_LT(relative_error(logits, at::cat(expected)), one.tolerance);
      for (const int64_t s : {0, 1, 2, 3}) {
        EXPECT_EQ(cache.length(s), before[s] + counts[s]);
        const at::Tensor all = tokens_of(one.spec, static_cast<int>(s));
        EXPECT_LT(relative_error(cached(model, cache, all.narrow(1, before[s] + counts[s], 1), {s}),
                                 uncached(model, all, before[s] + counts[s] + 1)),
                  one.tolerance);
      }
    });
  }
}

TEST(CachedGeneration, SeveralTokensBehindWhatIsCachedSeeIt) {
  run_ranks(1, [&](Communicator& world) {
    const at::NoGradGuard no_grad;
    RunModel model({tiny_llama()}, world);
    const at::Tensor tokens = tokens_of(tiny_llama(), 0);
    KeyValueCache cache(1, 8);
    cached(model, cache, tokens.narrow(1, 0, 3), {0});
    EXPECT_LT(relative_error(cached(model, cache, tokens.narrow(1, 3, 4), {0}), uncached(model, tokens, 7)), 1e-12);
    EXPECT_EQ(cache.length(0), 7);
    EXPECT_THROW(cache.begin({{0, 2}}), InternalError);  // there is room for one
  });
}

// Bit by bit: neither its neighbours nor a copy of its cache change a sequence.
TEST(CachedGeneration, ASequenceDoesNotDependOnItsNeighbours) {
  for (const at::ScalarType dtype : {at::kDouble, at::kFloat, at::kBFloat16}) {
    run_ranks(1, [&](Communicator& world) {
      const at::NoGradGuard no_grad;
      ModelSpec spec = tiny_llama3();
      spec.context = 40;
      RunModel model({spec, 1, dtype}, world);
      KeyValueCache alone(1, 40), among(7, 40);
      const at::Tensor tokens = tokens_of(spec, 0);
      cached(model, alone, tokens.narrow(1, 0, 20), {0});
      for (const int64_t s : {3, 0, 1, 2}) {
        cached(model, among, (s == 3 ? tokens : tokens_of(spec, static_cast<int>(s))).narrow(1, 0, 20), {s});
      }
      among.copy(3, 6);
      const at::Tensor next = tokens.narrow(1, 20, 1);
      const at::Tensor by_itself = cached(model, alone, next, {0});
      for (const std::vector<int64_t>& rows : {std::vector<int64_t>{3, 0}, {6, 0, 1, 2, 3}, {2, 6, 1}}) {
        const at::Tensor all = next.expand({static_cast<int64_t>(rows.size()), 1}).contiguous();
        among.begin_step(rows);  // not ended: the same place again
        const at::Tensor logits = forward(model, all, &among).select(1, 0);
        for (size_t i = 0; i < rows.size(); ++i) {
          if (rows[i] != 3 && rows[i] != 6) continue;
          EXPECT_TRUE(logits[static_cast<int64_t>(i)].equal(by_itself[0])) << dtype << ", row " << i;
        }
      }
    });
  }
}

TEST(CachedGeneration, AForgottenSequenceBeginsAnew) {
  run_ranks(1, [&](Communicator& world) {
    const at::NoGradGuard no_grad;
    RunModel model({tiny_gpt2()}, world);
    KeyValueCache cache(1, 8);
    const at::Tensor tokens = tokens_of(tiny_gpt2(), 0), others = tokens_of(tiny_gpt2(), 1);
    cached(model, cache, others, {0});
    cache.forget(0);
    cached(model, cache, tokens.narrow(1, 0, 2), {0});
    EXPECT_LT(relative_error(cached(model, cache, tokens.narrow(1, 2, 1), {0}), uncached(model, tokens, 3)), 1e-12);
  });
}

// A window hides what is before it, as if it had never been there.
TEST(CachedGeneration, AWindowHidesOldTokens) {
  const at::NoGradGuard no_grad;
  constexpr int64_t kTokens = 37, kHeads = 4, kGroups = 2, kWidth = 6, kWindow = 19;
  const at::Tensor all = formula_tensor("qkv", {1, kTokens, (kHeads + 2 * kGroups) * kWidth});
  const auto last = [&](int64_t first, int64_t window) {
    KeyValueCache cache(1, 64);
    at::Tensor y;
    for (int64_t t = first; t < kTokens; ++t) {
      cache.begin_step({0});
      y = cached_attention(all.narrow(1, t, 1).contiguous(), {kHeads, kGroups, window}, cache);
      cache.end();
    }
    return y;
  };
  EXPECT_LT(relative_error(last(0, kWindow), last(kTokens - kWindow, 0)), 1e-13);
  EXPECT_GT(relative_error(last(0, 0), last(kTokens - kWindow, 0)), 1e-3);
}

template <class T>
void expect_equal_sets(at::ScalarType dtype) {
  if (!kernels::can_run(kernels::Processor::Avx512)) return;
  constexpr int64_t kRows = 7, kInputs = 45, kOutputs = 9;
  const at::Tensor x = formula_tensor("x", {kRows, kInputs}).to(dtype),
                   w = formula_tensor("w", {kOutputs, kInputs}).to(dtype);
  std::vector<std::vector<T>> results;
  for (const auto processor : {kernels::Processor::Baseline, kernels::Processor::Avx512}) {
    std::vector<T> y(kRows * kOutputs);
    kernels::kernels_for<kernels::GenerationKernels<T>>(processor).product(
        {kRows, kInputs, kOutputs, x.const_data_ptr<T>(), w.const_data_ptr<T>(), nullptr, y.data()}, {0, kOutputs});
    results.push_back(y);
  }
  EXPECT_EQ(std::memcmp(results[0].data(), results[1].data(), results[0].size() * sizeof(T)), 0) << dtype;
}

TEST(RowProduct, IsTheProductAndTheSameOnAllProcessors) {
  for (const auto& [dtype, tolerance] : {std::pair(at::kDouble, 1e-14), {at::kFloat, 1e-6}, {at::kHalf, 1e-3}}) {
    for (const int64_t rows : {1, 2, 3, 4, 7, 9}) {
      const at::Tensor x = formula_tensor("x", {rows, 1, 45}).to(dtype);
      const at::Tensor w = formula_tensor("w", {13, 45}).to(dtype), bias = formula_tensor("b", {13}).to(dtype);
      const at::Tensor y = kernels::row_product(x, w, bias);
      const at::Tensor expected = x.to(at::kDouble).matmul(w.to(at::kDouble).t()).add(bias.to(at::kDouble));
      EXPECT_LT(relative_error(y, expected), tolerance) << dtype << ", " << rows << " rows";
      EXPECT_TRUE(kernels::row_product(x.narrow(0, rows - 1, 1), w, bias)[0].equal(y[rows - 1]));
    }
  }
  expect_equal_sets<float>(at::kFloat);
  expect_equal_sets<c10::BFloat16>(at::kBFloat16);
}

// Evaluations: the loss of the last tokens alone.
TEST(LastTargets, GiveTheLossOfTheLastTokens) {
  run_ranks(1, [&](Communicator& world) {
    const at::NoGradGuard no_grad;
    RunModel model({tiny_gpt2()}, world);
    Microbatch m = run_microbatch({tiny_gpt2()}, 0);
    m.training = false;
    const at::Tensor targets = m.targets_bt;
    m.targets_bt = at::Tensor();
    const at::Tensor rows = model.forward(m).log_softmax(-1).gather(-1, targets.unsqueeze(-1)).neg().squeeze(-1);
    m.targets_bt = targets.narrow(1, 5, 3);
    EXPECT_NEAR(model.forward(m).item<double>(), rows.narrow(1, 5, 3).mean().item<double>(), 1e-12);
  });
}

}  // namespace
}  // namespace braid::nn::cached_generation_test
