// A torch optimizer that updates other tensors than its own for a while.
#pragma once

#include <torch/optim/optimizer.h>

#include <type_traits>
#include <utility>
#include <vector>

namespace braid::modules {

// A scope in which an optimizer has no parameters and no states but those that it is given. Afterwards it has its own
// again.
class LentOptimizer {
 public:
  explicit LentOptimizer(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {
    for (auto& group : optimizer.param_groups()) parameters_.push_back(std::exchange(group.params(), {}));
    std::swap(states_, optimizer.state());
  }
  ~LentOptimizer() {
    for (size_t i = 0; i < parameters_.size(); ++i) optimizer_.param_groups()[i].params() = std::move(parameters_[i]);
    std::swap(states_, optimizer_.state());
  }
  LentOptimizer(const LentOptimizer&) = delete;

  void give(size_t group, const at::Tensor& parameter) {
    optimizer_.param_groups()[group].params().push_back(parameter);
  }
  void take_back() {
    for (auto& group : optimizer_.param_groups()) group.params().clear();
    optimizer_.state().clear();
  }

 private:
  torch::optim::Optimizer& optimizer_;
  std::vector<std::vector<at::Tensor>> parameters_;
  std::remove_reference_t<decltype(std::declval<torch::optim::Optimizer&>().state())> states_;
};

}  // namespace braid::modules
