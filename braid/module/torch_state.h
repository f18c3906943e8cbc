// The states of torch's optimizers as named tensors.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace torch::optim {
class Optimizer;
class OptimizerParamState;
}  // namespace torch::optim

namespace braid::modules {

// An optimizer's state of one tensor: tensors of its shape by torch's names ("exp_avg"), and its step count where the
// optimizer has one.
struct TorchState {
  std::map<std::string, at::Tensor> numbers;
  std::optional<int64_t> steps;
};

// "adam", "adamw" or "sgd". Throws ConfigError for any other.
std::string kind_of(const torch::optim::Optimizer& optimizer);
// The names of numbers that such an optimizer may keep. Throws as kind_of().
std::vector<std::string> names_of_numbers(const torch::optim::Optimizer& optimizer);
// Returns true if the optimizer keeps max_exp_avg_sq of `updated`, one of its tensors.
bool is_amsgrad(const torch::optim::Optimizer& optimizer, const at::Tensor& updated);
bool counts_steps(const torch::optim::Optimizer& optimizer);

TorchState state_of(const torch::optim::OptimizerParamState& state);
// As this optimizer keeps it. `state` has its numbers (max_exp_avg_sq may be missing but for amsgrad), and steps where
// they are counted.
std::unique_ptr<torch::optim::OptimizerParamState> made_state(const torch::optim::Optimizer& optimizer,
                                                              const TorchState& state);

}  // namespace braid::modules
