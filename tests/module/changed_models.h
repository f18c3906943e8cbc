// A model whose parameters are loaded, frozen or released while it is trained, and what it is trained on.
#pragma once

#include <gtest/gtest.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/sgd.h>
#include <torch/serialize.h>

#include <mutex>
#include <sstream>
#include <string>
#include <vector>

#include "braid/comm/local/run_ranks.h"
#include "braid/module/data_parallel.h"

namespace braid::changed_models {

inline constexpr int kStepsOfChange = 3;

// One layer is two of the list.
struct TwiceImpl : torch::nn::Module {
  explicit TwiceImpl(uint64_t seed) {
    torch::manual_seed(seed);
    in = register_module("first", torch::nn::Linear(4, 6));
    twice = register_module("twice", torch::nn::Linear(6, 6));
    head = register_module("head", torch::nn::Linear(6, 2));
    to(at::kDouble);
  }
  LayerList layers() {
    LayerList list;
    list.add("in", in).add("twice", twice).add("act", torch::nn::Tanh()).add("again", twice).add("head", head);
    return list;
  }
  at::Tensor forward(const at::Tensor& x) { return head(twice(twice(in(x)).tanh())); }
  torch::nn::Linear in{nullptr}, twice{nullptr}, head{nullptr};
};
TORCH_MODULE(Twice);

inline at::Tensor mean_square_of(const at::Tensor& output, const at::Tensor& target) {
  return (output - target).square().mean();
}

struct Pairs {
  at::Tensor x, y;
};
// Ranks that are threads share the generator.
inline const Pairs& pairs_of(int step) {
  static const std::vector<Pairs> all = [] {
    std::vector<Pairs> made;
    torch::manual_seed(10);
    for (int i = 0; i < kStepsOfChange; ++i) {
      made.push_back({torch::randn({8, 4}, at::kDouble), torch::randn({8, 2}, at::kDouble)});
    }
    return made;
  }();
  return all[static_cast<size_t>(step)];
}

inline std::string checkpoint() {
  const Twice other(77);
  std::ostringstream written;
  torch::save(other, written);
  return written.str();
}

// Torch's archives are not for several threads at once.
inline void load_into(Twice& net, const std::string& file) {
  static std::mutex one_at_a_time;
  const std::lock_guard lock(one_at_a_time);
  std::istringstream read(file);
  torch::load(net, read);
}

// The same, where the tensors it replaces may have no memory.
inline void load_into(Twice& net, const std::string& file, DataParallel& parallel) {
  parallel.with_whole_parameters([&] { load_into(net, file); });
}

enum class LoadAt { BetweenSteps, BeforeUpdate };

inline Tensors copies_of(Twice& net) {
  Tensors all;
  for (const at::Tensor& each : net->parameters()) all.push_back(each.detach().clone());
  return all;
}

// One rank, which loads in the second step.
inline Tensors serial_with_load(LoadAt when) {
  Twice net(1);
  torch::optim::SGD optimizer(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  for (int step = 0; step < kStepsOfChange; ++step) {
    if (step == 1 && when == LoadAt::BetweenSteps) load_into(net, checkpoint());
    optimizer.zero_grad();
    const auto& [x, y] = pairs_of(step);
    mean_square_of(net(x), y).backward();
    if (step == 1 && when == LoadAt::BeforeUpdate) load_into(net, checkpoint());
    optimizer.step();
  }
  return copies_of(net);
}

inline void expect_close_to(const Tensors& found, const Tensors& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT((found[i] - expected[i]).abs().max().item<double>(), 1e-10) << "parameter " << i;
  }
}

}  // namespace braid::changed_models
