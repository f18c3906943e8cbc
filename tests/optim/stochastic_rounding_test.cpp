// Optimizer states in bfloat16: their random bits on every placement, the mean of their roundings, and the updates of
// float32 states.
#include "braid/optim/stochastic_rounding.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "braid/base/seeds.h"
#include "braid/optim/optimizer.h"

namespace braid::optim::stochastic_rounding_test {
namespace {

using enum OptimizerKind;
constexpr OptimizerKind kKinds[] = {AdamW, Lion, Adagrad, Sgd};
constexpr int64_t kBlock = param::ParamStore::kAlign;
const model::Init kInit{model::Init::Kind::Normal, 0.5};

param::ParamStore store_of(const std::vector<layout::ParamSpec>& params, at::ScalarType type = at::kFloat,
                           uint64_t seed = 5) {
  return param::ParamStore({{"a", params}}, Reduction::Fast, type, seed);
}

// The words of all elements of a store with one parameter, without the padding behind it.
std::vector<uint32_t> words_of(const mesh::Placement& placement, int64_t step = 1, uint64_t seed = 5,
                               const char* name = "w") {
  const param::ParamStore store = store_of({{name, placement, kInit}}, at::kFloat, seed);
  const StochasticRounding rounding(store);
  std::vector<uint32_t> words(static_cast<size_t>(store.num_flat()), ~0u);
  for (int64_t block = 0; block < store.num_flat() / kBlock; ++block) {
    rounding.draw(block, step, words.data() + block * kBlock);
  }
  words.resize(static_cast<size_t>(mesh::num_elements(placement.local_shape)));
  return words;
}

// Compares each local element's word with that of the global element, one element at a time.
void expect_words_of_the_whole(const mesh::Placement& part) {
  const auto whole = words_of(mesh::replicated(part.global_shape)), local = words_of(part);
  std::vector<uint32_t> want(local.size(), 0);  // zeros in the padding
  for (const mesh::Piece& piece : part.pieces) {
    for (int64_t i = 0; i < piece.global.num_elements(); ++i) {
      int64_t rest = i, of_whole = 0, of_local = 0, whole_stride = 1, local_stride = 1;
      for (size_t d = part.global_shape.size(); d-- > 0;) {
        const int64_t extent = piece.global.end[d] - piece.global.begin[d];
        of_whole += (piece.global.begin[d] + rest % extent) * whole_stride;
        of_local += (piece.local_begin[d] + rest % extent) * local_stride;
        rest /= extent;
        whole_stride *= part.global_shape[d];
        local_stride *= part.local_shape[d];
      }
      want[static_cast<size_t>(of_local)] = whole[static_cast<size_t>(of_whole)];
    }
  }
  EXPECT_EQ(local, want);
}

TEST(StochasticRounding, BitsAreThoseOfTheWholeTensorOnEveryPlacement) {
  for (const int part : {0, 1, 2}) {
    const mesh::Share third{part, 3, mesh::Axis::Tensor};
    expect_words_of_the_whole(mesh::split_dim({60, 70}, 0, 60, third));
    expect_words_of_the_whole(mesh::split_dim({59, 70}, 0, 60, third));  // padded
    expect_words_of_the_whole(mesh::split_dim({35, 93}, 1, 93, third));
    expect_words_of_the_whole(mesh::split_dim({4, 6, 9, 7}, 2, 9, third));
    expect_words_of_the_whole(mesh::split_dim({3001}, 0, 3003, third));
    expect_words_of_the_whole(mesh::split_segments({72, 41}, 0, mesh::Index{36, 18, 18}, third));
    expect_words_of_the_whole(mesh::split_segments({41, 72}, 1, mesh::Index{36, 18, 18}, third));
    expect_words_of_the_whole(
        mesh::split_segments({72, 41}, 0, std::vector<mesh::Segment>{{36, 3}, {18, 1}, {18, 1}}, third));
  }
  expect_words_of_the_whole(mesh::replicated({}));
}

// Later versions draw the same, so that runs of earlier ones resume with their bits.
TEST(StochasticRounding, BitsAreThoseOfPhilox) {
  const uint64_t key = stream_key(5, "optimizer.state_dtype/w");
  for (const int64_t step : {int64_t{3}, (int64_t{7} << 32) + 3}) {
    const auto words = words_of(mesh::replicated({2001}), step);
    for (uint32_t i = 0; i < words.size(); ++i) {
      const auto high = static_cast<uint32_t>(step >> 32);
      EXPECT_EQ(words[i], philox_words({{i / 4, 0, 3, high}}, key).at[i % 4]) << i;
    }
  }
}

TEST(StochasticRounding, BitsDifferBetweenSeedsParametersAndUpdates) {
  const mesh::Placement placement = mesh::replicated({kBlock});
  const auto words = words_of(placement);
  EXPECT_EQ(words_of(placement), words);
  for (const auto& other : {words_of(placement, 2), words_of(placement, 1 + (int64_t{1} << 32)),
                            words_of(placement, 1, 6), words_of(placement, 1, 5, "v")}) {
    int equal = 0;
    for (size_t i = 0; i < words.size(); ++i) equal += words[i] == other[i];
    EXPECT_LE(equal, 1);  // expected: 1024 / 2^32
  }
}

// N roundings of a value that is the fraction f of the way to its upper neighbour, one unit u away, have a mean whose
// standard deviation is u sqrt(f (1 - f) / N). Five of them are exceeded once in 1.7 million tests. The two states of
// an element are rounded independently: the number that both go up is binomial too, with f^2.
TEST(StochasticRounding, HasTheValueAsItsMean) {
  const param::ParamStore store = store_of({{"w", mesh::replicated({64 * kBlock}), kInit}});
  const StochasticRounding rounding(store);
  for (const float value : {1.0f + 0.3f / 128, -1.5f - 0.5f / 128, 3e-5f, 1e-39f}) {
    const std::vector<float> values(kBlock, value);
    std::vector<uint32_t> words(kBlock);
    std::vector<Bf16> rounded[2] = {std::vector<Bf16>(kBlock), std::vector<Bf16>(kBlock)};
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const double below = widen(static_cast<Bf16>(bits >> 16)), above = widen(static_cast<Bf16>((bits >> 16) + 1));
    const double fraction = (bits & 0xffff) / 65536.0;
    double sum[2] = {0, 0}, both = 0;
    int64_t count = 0;
    for (int step = 1; step <= 4; ++step) {
      for (int64_t block = 0; block < 64; ++block) {
        rounding.draw(block, step, words.data());
        for (const int state : {0, 1}) round_block(values.data(), words.data(), state, rounded[state].data());
        for (int64_t i = 0; i < kBlock; ++i, ++count) {
          for (const int state : {0, 1}) {
            const double got = widen(rounded[state][i]);
            ASSERT_TRUE(got == below || got == above) << got;
            sum[state] += got;
          }
          both += widen(rounded[0][i]) == above && widen(rounded[1][i]) == above;
        }
      }
    }
    const auto n = static_cast<double>(count);
    const double bound = 5 * std::abs(above - below) * std::sqrt(fraction * (1 - fraction) / n);
    for (const int state : {0, 1}) EXPECT_NEAR(sum[state] / n, value, bound) << value << " state " << state;
    const double f2 = fraction * fraction;
    EXPECT_NEAR(both / n, f2, 5 * std::sqrt(f2 * (1 - f2) / n)) << value;
  }
}

void fill_grads(param::ParamStore& store, uint64_t key) {
  for (param::Parameter& param : store.params()) {
    float* grad = param.main_grad.mutable_data_ptr<float>();
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      grad[i] = static_cast<float>(2 * uniform(key, static_cast<uint64_t>(param.offset + i)) - 1);
    }
  }
}

std::vector<layout::ParamSpec> some_params() {
  return {{"w", mesh::replicated({70, 31}), kInit},
          {"b", mesh::replicated({70}), kInit, model::WeightDecay::No},
          {"x", mesh::replicated({33, 100}), kInit}};
}

OptimizerSpec rounded(OptimizerKind kind) { return {.kind = kind, .state_dtype = StateType::BFloat16}; }

// The same update as with float32 states that have the rounded values, whose results are then rounded.
TEST(StochasticRounding, UpdatesAreThoseOfFloat32StatesRounded) {
  for (const auto kind : kKinds) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      param::ParamStore full = store_of(some_params(), type), low = store_of(some_params(), type);
      const StochasticRounding rounding(low);
      const auto of_full = make_optimizer({.kind = kind}, full), of_low = make_optimizer(rounded(kind), low);
      std::vector<uint32_t> words(static_cast<size_t>(low.num_flat()));
      for (int step = 1; step <= 3; ++step) {
        fill_grads(full, step), fill_grads(low, step);
        of_full->step({.lr = 0.01, .grad_scale = 0.5}), of_low->step({.lr = 0.01, .grad_scale = 0.5});
        EXPECT_TRUE(at::equal(low.flat_master(), full.flat_master())) << kind << " step " << step;
        EXPECT_TRUE(at::equal(low.flat_data(), full.flat_data())) << kind << " step " << step;
        for (int64_t b = 0; b < low.num_flat() / kBlock; ++b) rounding.draw(b, step, words.data() + b * kBlock);
        for (size_t s = 0; s < of_low->states().size(); ++s) {
          const at::Tensor &state = of_low->states()[s].flat, &wide = of_full->states()[s].flat;
          ASSERT_EQ(state.scalar_type(), at::kBFloat16);
          float* const want = wide.mutable_data_ptr<float>();
          for (size_t i = 0; i < words.size(); ++i)
            want[i] = widen(narrow_randomly(want[i], words[i] >> (16 * s) & 0xffff));
          EXPECT_TRUE(at::equal(state.to(at::kFloat), wide)) << kind << " state " << s << " step " << step;
        }
      }
    }
  }
}

TEST(StochasticRounding, ThreadsDoNotChangeABit) {
  const auto trained = [](OptimizerKind kind, int num_threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(num_threads);
    param::ParamStore store = store_of({{"w", mesh::replicated({300, 301}), kInit}});
    const auto optimizer = make_optimizer(rounded(kind), store);
    for (int step = 0; step < 3; ++step) {
      fill_grads(store, step);
      optimizer->step({.lr = 0.01});
    }
    at::set_num_threads(before);
    std::vector<at::Tensor> all{store.flat_data()};
    for (const OptimizerState& state : optimizer->states()) all.push_back(state.flat);
    return all;
  };
  for (const auto kind : kKinds) {
    const auto one = trained(kind, 1);
    for (const int num_threads : {2, 3}) {
      const auto many = trained(kind, num_threads);
      for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], many[i])) << kind << " " << num_threads;
    }
  }
}

// With a gradient of 1, AdamW's second moment is 1 - beta2^t. In [1/4, 1/2) bfloat16 has units of 2^-9, and for beta2 =
// 0.999 a step changes the moment by less than half of one: rounding to nearest stays at 1/4.
//
// Stochastic roundings are independent with mean 0 and at most the variance (2^-8 / 2)^2 below 1. So the variance of
// the moment is at most 2^-18 / (1 - beta2^2), and that of the mean over N elements 1 / N of it. The bound is five
// standard deviations.
TEST(StochasticRounding, SmallChangesAddUp) {
  constexpr int64_t kElements = 4 * kBlock;
  constexpr double kBeta2 = 0.999;
  constexpr int kSteps = 1000;
  param::ParamStore store = store_of({{"w", mesh::replicated({kElements}), kInit}});
  OptimizerSpec spec = rounded(AdamW);
  spec.beta2 = kBeta2;
  const auto optimizer = make_optimizer(spec, store);
  store.params()[0].main_grad.fill_(1);
  for (int step = 0; step < kSteps; ++step) optimizer->step({.lr = 0});
  const double mean = optimizer->states()[1].flat.to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(mean, 1 - std::pow(kBeta2, kSteps), 5 * std::sqrt(0x1p-18 / (1 - kBeta2 * kBeta2) / kElements));
}

}  // namespace
}  // namespace braid::optim::stochastic_rounding_test
