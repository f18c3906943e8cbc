// AdamW against real PyTorch, against a plain float64 loop, and against itself with other thread counts.
#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mul.h>
#include <gtest/gtest.h>

#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/seeds.h"
#include "braid/optim/optimizer.h"

namespace braid::optim::adamw_test {
namespace {

template <class T>
T* flat(const at::Tensor& tensor) {
  return static_cast<T*>(tensor.mutable_data_ptr());
}

// Writes number i of the stream `key`, uniform in [-1, 1), into each parameter's gradient; padding stays zero.
template <class T>
void fill_grads(param::ParamStore& store, uint64_t key) {
  for (param::Parameter& param : store.params()) {
    T* grad = param.main_grad.mutable_data_ptr<T>();
    for (int64_t i = 0; i < param.num_elements(); ++i) grad[i] = static_cast<T>(2 * uniform(key, param.offset + i) - 1);
  }
}

std::vector<layout::BlockSpec> mixed_model() {
  const model::Init init{model::Init::Kind::Normal, 0.5};
  return {
      {"a",
       {{"w", mesh::replicated({70, 31}), init},
        {"b", mesh::replicated({70}), init, model::WeightDecay::No},
        {"c", mesh::replicated({1500}), init, model::WeightDecay::No}}},
      {"d", {{"x", mesh::replicated({33, 100}), init}, {"y", mesh::replicated({3}), init, model::WeightDecay::No}}}};
}

// Five steps of torch.optim.AdamW, torch 2.11.0+cu130, lr 0.01, betas (0.9, 0.95), eps 1e-8, weight_decay 0.1.
constexpr int kGoldenSteps = 5;
constexpr double kGoldenGrads[kGoldenSteps][4] = {{0.1, -0.2, 0.3, 0.0},
                                                  {0.5, 0.25, -0.125, 1e-4},
                                                  {-1.0, 2.0, 0.0, 1e-4},
                                                  {0.01, 0.02, 0.03, -3.0},
                                                  {4.0, -0.5, 0.25, 0.125}};
constexpr double kGoldenWeights[kGoldenSteps][4] = {
    {0.9890000009999999, -1.9880000005, 0.4895000003333333, 0.0},
    {0.979498698994663, -1.9876348516761477, 0.4856592843350485, -0.007348573850544},
    {0.9811371775881768, -1.992000388930154, 0.4825496303493956, -0.01581988698184457},
    {0.9822769367082185, -1.9953369017476845, 0.4793468329554041, -0.010203619937207852},
    {0.9767395498404979, -1.9964504114822477, 0.47373590734584864, -0.005623725368691921}};
constexpr double kGoldenFirst[4] = {0.362911, 0.118903, 0.03827049999999999, -0.25748460999999995};
constexpr double kGoldenSecond[4] = {0.8562541906250007, 0.19732730937500015, 0.007502852343750006, 0.4282812508799379};

template <class T>
void expect_golden(double tolerance) {
  param::ParamStore store({{"b", {{"w", mesh::replicated({4})}}}}, Reduction::Fast, c10::CppTypeToScalarType<T>::value,
                          1);
  const auto optimizer = make_optimizer({.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .weight_decay = 0.1}, store);
  T* weight = flat<T>(store.flat_data());
  for (int i = 0; i < 4; ++i) weight[i] = std::array<T, 4>{1.0, -2.0, 0.5, 0.0}[i];
  for (int s = 0; s < kGoldenSteps; ++s) {
    // Halved and scaled back by two: the gradient scale is applied before the moments.
    for (int i = 0; i < 4; ++i) flat<T>(store.flat_grads())[i] = static_cast<T>(kGoldenGrads[s][i] / 2);
    optimizer->step({.lr = 0.01, .grad_scale = 2});
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(weight[i], kGoldenWeights[s][i], tolerance) << "step " << s << ", " << i;
  }
  for (int i = 0; i < 4; ++i) {
    EXPECT_NEAR(flat<T>(optimizer->states()[0].flat)[i], kGoldenFirst[i], tolerance);
    EXPECT_NEAR(flat<T>(optimizer->states()[1].flat)[i], kGoldenSecond[i], tolerance);
  }
  EXPECT_EQ(optimizer->num_steps(), kGoldenSteps);
}

TEST(AdamW, MatchesPyTorch) {
  expect_golden<double>(2e-15);
  expect_golden<float>(3e-7);
}

// Algorithm 2 of the paper, one element at a time.
struct Reference {
  explicit Reference(const param::ParamStore& store) {
    for (const param::Parameter& param : store.params()) {
      const at::Tensor data = param.data.detach().to(at::kDouble).reshape({-1});
      weight.emplace_back(flat<double>(data), flat<double>(data) + data.numel());
    }
    first = second = weight;
    for (auto* moments : {&first, &second}) {
      for (auto& values : *moments) std::fill(values.begin(), values.end(), 0.0);
    }
  }

  template <class T>
  void step(const param::ParamStore& store, const OptimizerSpec& spec, const OptimizerStep& step) {
    ++t;
    for (const param::Parameter& param : store.params()) {
      const double decay = param.decay == model::WeightDecay::Yes ? spec.weight_decay : 0;
      for (int64_t i = 0; i < param.num_elements(); ++i) {
        const double g = step.grad_scale * param.main_grad.const_data_ptr<T>()[i];
        double &w = weight[param.index][i], &m = first[param.index][i], &v = second[param.index][i];
        m = spec.beta1 * m + (1 - spec.beta1) * g;
        v = spec.beta2 * v + (1 - spec.beta2) * g * g;
        const double m_hat = m / (1 - std::pow(spec.beta1, t)), v_hat = v / (1 - std::pow(spec.beta2, t));
        w = w - step.lr * decay * w - step.lr * m_hat / (std::sqrt(v_hat) + spec.eps);
      }
    }
  }

  std::vector<std::vector<double>> weight, first, second;
  int t = 0;
};

template <class T>
void expect_reference(double tolerance) {
  param::ParamStore store(mixed_model(), Reduction::Fast, c10::CppTypeToScalarType<T>::value, 5);
  const OptimizerSpec spec{.beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.3};
  const auto optimizer = make_optimizer(spec, store);
  Reference reference(store);
  for (int s = 0; s < 6; ++s) {
    fill_grads<T>(store, s);
    const OptimizerStep step{.lr = 0.02 / (s + 1), .grad_scale = 0.7};
    optimizer->step(step);
    reference.step<T>(store, spec, step);
  }
  double worst = 0;
  for (const param::Parameter& param : store.params()) {
    for (int64_t i = 0; i < param.num_elements(); ++i) {
      worst = std::max(worst, std::abs(param.data.const_data_ptr<T>()[i] - reference.weight[param.index][i]));
    }
  }
  EXPECT_LT(worst, tolerance);
}

TEST(AdamW, MatchesThePaperElementByElement) {
  expect_reference<double>(1e-14);
  expect_reference<float>(2e-6);
}

// Low-precision data over float32 masters: the same masters and moments as float32 training, bit for bit, and data that
// is the masters rounded.
TEST(AdamW, LowPrecisionDataIsTheMastersRounded) {
  for (const at::ScalarType dtype : {at::kBFloat16, at::kHalf}) {
    param::ParamStore full(mixed_model(), Reduction::Fast, at::kFloat, 5),
        low(mixed_model(), Reduction::Fast, dtype, 5);
    ASSERT_EQ(low.flat_data().scalar_type(), dtype);
    ASSERT_EQ(low.flat_grads().scalar_type(), at::kFloat);
    ASSERT_TRUE(at::equal(low.flat_data(), full.flat_data().to(dtype)));
    const auto of_full = make_optimizer({}, full), of_low = make_optimizer({}, low);
    for (int s = 0; s < 3; ++s) {
      fill_grads<float>(full, s);
      fill_grads<float>(low, s);
      of_full->step({.lr = 0.01, .grad_scale = 0.5});
      of_low->step({.lr = 0.01, .grad_scale = 0.5});
    }
    EXPECT_TRUE(at::equal(low.flat_master(), full.flat_data())) << dtype;
    EXPECT_TRUE(at::equal(low.flat_data(), full.flat_data().to(dtype))) << dtype;
    EXPECT_FALSE(at::equal(low.flat_data().to(at::kFloat), full.flat_data())) << "nothing was rounded";
    EXPECT_TRUE(at::equal(of_low->states()[1].flat, of_full->states()[1].flat)) << dtype;
  }
}

template <class T>
std::vector<at::Tensor> trained(int num_threads) {
  const int before = at::get_num_threads();
  at::set_num_threads(num_threads);
  param::ParamStore store(
      {{"big", {{"big", mesh::replicated({300, 301}), {model::Init::Kind::Normal, 1}}}}, mixed_model()[0]},
      Reduction::Fast, c10::CppTypeToScalarType<T>::value, 5);
  const auto optimizer = make_optimizer({}, store);
  for (int s = 0; s < 3; ++s) {
    fill_grads<T>(store, s);
    optimizer->step({.lr = 0.01});
  }
  at::set_num_threads(before);
  return {store.flat_data(), optimizer->states()[0].flat, optimizer->states()[1].flat};
}

template <class T>
void expect_threads_do_not_matter() {
  const auto one = trained<T>(1);
  for (const int num_threads : {2, 3, 4}) {
    const auto many = trained<T>(num_threads);
    for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(at::equal(one[i], many[i])) << num_threads << " threads, " << i;
  }
}

TEST(AdamW, ThreadsDoNotChangeABit) {
  expect_threads_do_not_matter<float>();
  expect_threads_do_not_matter<double>();
}

TEST(AdamW, PaddingStaysZero) {
  param::ParamStore store(mixed_model(), Reduction::Fast, at::kFloat, 5);
  const auto optimizer = make_optimizer({}, store);
  for (int s = 0; s < 3; ++s) {
    fill_grads<float>(store, s);
    optimizer->step({.lr = 0.1});
  }
  std::vector<bool> is_padding(store.num_flat(), true);
  for (const param::Parameter& param : store.params()) {
    std::fill_n(is_padding.begin() + param.offset, param.num_elements(), false);
  }
  for (const at::Tensor& tensor : {store.flat_data(), optimizer->states()[0].flat, optimizer->states()[1].flat}) {
    for (int64_t i = 0; i < store.num_flat(); ++i) {
      if (is_padding[i]) {
        ASSERT_EQ(flat<float>(tensor)[i], 0) << i;
      }
    }
  }
}

// Save after two steps, load into a new optimizer, go on: as if never stopped.
TEST(AdamW, ContinuesFromItsState) {
  param::ParamStore straight(mixed_model(), Reduction::Fast, at::kFloat, 5),
      halved(mixed_model(), Reduction::Fast, at::kFloat, 5);
  const auto all = make_optimizer({}, straight), first_half = make_optimizer({}, halved);
  const auto steps = [](param::ParamStore& store, Optimizer& optimizer, int from, int to) {
    for (int s = from; s < to; ++s) {
      fill_grads<float>(store, s);
      optimizer.step({.lr = 0.01});
    }
  };
  steps(straight, *all, 0, 4);
  steps(halved, *first_half, 0, 2);
  const auto second_half = make_optimizer({}, halved);
  for (const param::Parameter& param : halved.params()) {
    const auto of = [&](const at::Tensor& moment) { return moment.narrow(0, param.offset, param.num_elements()); };
    for (const size_t i : {0, 1}) of(second_half->states()[i].flat).copy_(of(first_half->states()[i].flat));
  }
  second_half->set_num_steps(first_half->num_steps());
  steps(halved, *second_half, 2, 4);
  EXPECT_TRUE(at::equal(straight.flat_data(), halved.flat_data()));
}

// Extra use slices lie behind the first part of the gradients; the optimizer reads main_grad alone.
TEST(AdamW, ReadsMainGradNotTheOtherUses) {
  const model::Init init{model::Init::Kind::Normal, 1};
  const layout::ParamSpec first{"w", mesh::replicated({8}), init, model::WeightDecay::Yes, 0, 2};
  layout::ParamSpec second = first;
  second.use = 1;
  param::ParamStore store({{"a", {first}}, {"b", {second}}}, Reduction::Reproducible, at::kFloat, 1);
  const at::Tensor before = store.flat_data().clone();
  store["w"].use_grads[1].slice.fill_(3);
  make_optimizer({.weight_decay = 0}, store)->step({.lr = 0.1});
  EXPECT_TRUE(at::equal(before, store.flat_data()));
}

TEST(AdamW, BackwardOverOldWeightsFails) {
  param::ParamStore store(mixed_model(), Reduction::Fast, at::kFloat, 5);
  const auto optimizer = make_optimizer({}, store);
  const at::Tensor weight = store["b"].data;
  const at::Tensor loss = at::mul(weight, weight).sum();
  optimizer->step({.lr = 0.1});
  EXPECT_THROW(loss.backward(), c10::Error);
}

TEST(AdamW, EpsMustBePositive) {
  param::ParamStore store(mixed_model(), Reduction::Fast, at::kFloat, 5);
  EXPECT_THROW(make_optimizer({.eps = 0}, store), InternalError);
}

}  // namespace
}  // namespace braid::optim::adamw_test
