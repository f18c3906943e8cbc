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

// An optimizer's state of one tensor: state tensors of its shape by torch's names ("exp_avg"), and its step count if
// the optimizer has one.
struct TorchState {
  std::map<std::string, at::Tensor> numbers;
  std::optional<int64_t> steps;
};

// Returns "adam", "adamw" or "sgd". Throws ConfigError for any other optimizer.
std::string kind_of(const torch::optim::Optimizer& optimizer);
// Returns true if the optimizer is one of these and not of a class derived from it.
bool is_torchs_own(const torch::optim::Optimizer& optimizer);
// Throws ConfigError if `updated`, the parameters() of a model, has trained tensors and the optimizer has none of them.
void require_parameters_of(const std::vector<at::Tensor>& updated, const torch::optim::Optimizer& optimizer);
// Returns the names of the state tensors that such an optimizer may have. Throws as kind_of() does.
std::vector<std::string> names_of_numbers(const torch::optim::Optimizer& optimizer);
// Returns the names of those that it keeps, with its options, of some of its parameters. Throws as kind_of() does.
std::vector<std::string> names_of_kept(const torch::optim::Optimizer& optimizer);
// Returns true if the optimizer keeps max_exp_avg_sq of `updated`, one of its tensors.
bool is_amsgrad(const torch::optim::Optimizer& optimizer, const at::Tensor& updated);
bool counts_steps(const torch::optim::Optimizer& optimizer);

// Returns the state that an optimizer has of one of its tensors, if it has one. REQUIRES: kind_of() does not throw.
std::optional<TorchState> find_state(const torch::optim::Optimizer& optimizer, const at::Tensor& updated);
// Returns `state` in this optimizer's own type. REQUIRES: `state` has all of its state tensors (max_exp_avg_sq is
// needed for amsgrad only), and steps if the optimizer counts them.
std::unique_ptr<torch::optim::OptimizerParamState> made_state(const torch::optim::Optimizer& optimizer,
                                                              const TorchState& state);

}  // namespace braid::modules
