// Optimizer states in 8 bits: the values of codes against their definition, the error of a block, and the updates of
// float32 states.
#include "braid/optim/quantized_states.h"

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "braid/base/seeds.h"
#include "braid/optim/optimizer.h"

namespace braid::optim::quantized_states_test {
namespace {

using enum OptimizerKind;
constexpr OptimizerKind kKinds[] = {AdamW, Lion, Adagrad, Sgd};
constexpr StateSign kSigns[] = {StateSign::Any, StateSign::NonNegative};
const model::Init kInit{model::Init::Kind::Normal, 0.5};

std::vector<double> sorted_values(StateSign sign) {
  std::vector<double> values;
  for (int code = 0; code < 256; ++code) values.push_back(code_value(static_cast<uint8_t>(code), sign));
  std::ranges::sort(values);
  return values;
}

// The construction of dynamic quantization: decade e = 0 .. 6 from 1e-7 of the largest on has the means of neighbouring
// ones of n + 1 points spread evenly over [0.1, 1], n = 2^e with a sign and 2^(e + 1) without. 0 and 1 are added.
TEST(QuantizedStates, CodesHaveTheValuesOfDynamicQuantization) {
  for (const auto sign : kSigns) {
    std::vector<double> want{0, 1};
    for (int e = 0; e <= 6; ++e) {
      const int n = (sign == StateSign::Any ? 1 : 2) << e;
      const auto point = [&](int i) { return 0.1 + 0.9 * i / n; };
      for (int i = 0; i < n; ++i) {
        const double mean = std::pow(10, e - 6) * (point(i) + point(i + 1)) / 2;
        want.push_back(mean);
        if (sign == StateSign::Any) want.push_back(-mean);
      }
    }
    std::ranges::sort(want);
    const std::vector<double> got = sorted_values(sign);
    ASSERT_EQ(want.size(), got.size());
    for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-7 * std::abs(want[i])) << i;
    EXPECT_EQ(code_value(0, sign), 0);
  }
}

struct Quantized {
  std::vector<uint8_t> codes;
  std::vector<float> scales, back;
};
Quantized quantized(const std::vector<float>& values, StateSign sign) {
  Quantized all{std::vector<uint8_t>(values.size()), std::vector<float>(values.size() / kStateBlock), values};
  const auto count = static_cast<int64_t>(values.size());
  quantize(values.data(), count, sign, all.codes.data(), all.scales.data());
  dequantize(all.codes.data(), all.scales.data(), count, sign, all.back.data());
  return all;
}

// Blocks whose magnitudes are spread over many decades or over one, of many scales.
std::vector<float> some_values(StateSign sign) {
  std::vector<float> values;
  for (uint64_t i = 0; i < 200 * kStateBlock; ++i) {
    const uint64_t block = i / kStateBlock;
    const double exponent = (block % 2 == 0 ? -10 : -1) * uniform(1, i) + 20 * uniform(2, block) - 10;
    const double minus = sign == StateSign::Any && uniform(3, i) < 0.5 ? -1 : 1;
    values.push_back(static_cast<float>(minus * std::pow(10, exponent)));
  }
  return values;
}

// Half of the widest gap between values: 0.9 / 64 of a block's largest magnitude with a sign, 0.9 / 128 without.
TEST(QuantizedStates, BecomeTheNearestValueOfTheirBlock) {
  for (const auto sign : kSigns) {
    const std::vector<double> table = sorted_values(sign);
    const std::vector<float> values = some_values(sign);
    const Quantized got = quantized(values, sign);
    for (size_t i = 0; i < values.size(); ++i) {
      const size_t first = i / kStateBlock * kStateBlock;
      double largest = 0;
      for (size_t j = first; j < first + kStateBlock; ++j) largest = std::max<double>(largest, std::abs(values[j]));
      EXPECT_EQ(got.scales[i / kStateBlock], static_cast<float>(largest));
      double nearest = largest;
      for (const double value : table) {
        const bool zero = value == 0 && sign == StateSign::NonNegative;
        if (!zero) nearest = std::min(nearest, std::abs(value * largest - values[i]));
      }
      const double error = std::abs(static_cast<double>(got.back[i]) - values[i]);
      EXPECT_NEAR(error, nearest, 1e-6 * std::abs(values[i]) + 1e-12 * largest) << values[i];
      EXPECT_LE(error, (sign == StateSign::Any ? 0.9 / 64 : 0.9 / 128) / 2 * largest * (1 + 1e-5));
    }
  }
}

TEST(QuantizedStates, KeepZerosLargestValuesAndNans) {
  std::vector<float> values(4 * kStateBlock, 0.0f);
  values[kStateBlock] = 3, values[kStateBlock + 1] = 1e-30f;
  values[2 * kStateBlock] = std::numeric_limits<float>::denorm_min();
  values[3 * kStateBlock] = std::numeric_limits<float>::quiet_NaN(), values[3 * kStateBlock + 1] = 1;
  for (const auto sign : kSigns) {
    const std::vector<float> back = quantized(values, sign).back;
    for (int i = 0; i < kStateBlock; ++i) EXPECT_EQ(back[i], 0);
    EXPECT_EQ(back[kStateBlock], 3);
    const float least = sign == StateSign::NonNegative ? 3 * 3.25e-7f : 0;
    EXPECT_FLOAT_EQ(back[kStateBlock + 1], least) << "the least positive value, if there is no sign";
    for (int i = 2; i < kStateBlock; ++i) EXPECT_EQ(back[kStateBlock + i], 0);
    EXPECT_EQ(back[2 * kStateBlock], values[2 * kStateBlock]);
    for (int i = 0; i < kStateBlock; ++i) EXPECT_TRUE(std::isnan(back[3 * kStateBlock + i]));
  }
}

param::ParamStore store_of(const std::vector<layout::ParamSpec>& params, at::ScalarType type = at::kFloat) {
  return param::ParamStore({{"a", params}}, Reduction::Fast, type, 5);
}

void fill_grads(param::ParamStore& store, uint64_t key) {
  for (param::Parameter& param : store.params()) {
    float* const grad = param.main_grad.mutable_data_ptr<float>();
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      grad[i] = static_cast<float>(2 * uniform(key, static_cast<uint64_t>(param.offset + i)) - 1);
    }
  }
}

OptimizerSpec coded(OptimizerKind kind) { return {.kind = kind, .state_dtype = StateType::Int8}; }

// The same update as with float32 states of the values of the codes, whose results are then quantized.
TEST(QuantizedStates, UpdatesAreThoseOfFloat32StatesQuantized) {
  const std::vector<layout::ParamSpec> params = {{"w", mesh::replicated({70, 31}), kInit},
                                                 {"b", mesh::replicated({70}), kInit, model::WeightDecay::No},
                                                 {"x", mesh::replicated({33, 100}), kInit}};
  for (const auto kind : kKinds) {
    for (const auto type : {at::kFloat, at::kBFloat16, at::kHalf}) {
      param::ParamStore full = store_of(params, type), low = store_of(params, type);
      const auto of_full = make_optimizer({.kind = kind}, full), of_low = make_optimizer(coded(kind), low);
      for (int step = 1; step <= 3; ++step) {
        fill_grads(full, step), fill_grads(low, step);
        of_full->step({.lr = 0.01, .grad_scale = 0.5}), of_low->step({.lr = 0.01, .grad_scale = 0.5});
        EXPECT_TRUE(at::equal(low.flat_master(), full.flat_master())) << kind << " step " << step;
        EXPECT_TRUE(at::equal(low.flat_data(), full.flat_data())) << kind << " step " << step;
        for (size_t s = 0; s < of_low->states().size(); ++s) {
          const OptimizerState &state = of_low->states()[s], &wide = of_full->states()[s];
          ASSERT_EQ(state.flat.scalar_type(), at::kByte);
          float* const want = wide.flat.mutable_data_ptr<float>();
          const Quantized all = quantized(std::vector<float>(want, want + wide.flat.numel()), state.sign);
          const auto* const codes = state.flat.const_data_ptr<uint8_t>();
          const auto* const scales = state.scales.const_data_ptr<float>();
          EXPECT_TRUE(std::equal(all.codes.begin(), all.codes.end(), codes)) << kind << " state " << s;
          EXPECT_TRUE(std::equal(all.scales.begin(), all.scales.end(), scales)) << kind << " state " << s;
          std::ranges::copy(all.back, want);
        }
      }
    }
  }
}

TEST(QuantizedStates, AreNonNegativeWhereUpdatesTakeTheirRoot) {
  const auto signs = [](OptimizerKind kind) { return element_rule({.kind = kind}).state_signs(); };
  using Signs = std::vector<StateSign>;
  EXPECT_EQ(signs(AdamW), (Signs{StateSign::Any, StateSign::NonNegative}));
  EXPECT_EQ(signs(Adagrad), Signs{StateSign::NonNegative});
  EXPECT_EQ(signs(Lion), Signs{StateSign::Any});
  EXPECT_EQ(signs(Sgd), Signs{StateSign::Any});
}

TEST(QuantizedStates, ThreadsDoNotChangeABit) {
  const auto trained = [](int num_threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(num_threads);
    param::ParamStore store = store_of({{"w", mesh::replicated({300, 301}), kInit}});
    const auto optimizer = make_optimizer(coded(AdamW), store);
    for (int step = 0; step < 3; ++step) {
      fill_grads(store, step);
      optimizer->step({.lr = 0.01});
    }
    at::set_num_threads(before);
    std::vector<at::Tensor> all{store.flat_data()};
    for (const OptimizerState& state : optimizer->states()) all.insert(all.end(), {state.flat, state.scales});
    return all;
  };
  const auto one = trained(1), many = trained(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], many[i])) << i;
}

}  // namespace
}  // namespace braid::optim::quantized_states_test
