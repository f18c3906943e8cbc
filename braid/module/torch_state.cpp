// Converts the states of torch's optimizers, by kind of optimizer.
#include "braid/module/torch_state.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <algorithm>
#include <typeinfo>

#include "braid/base/errors.h"

namespace braid::modules {
namespace {

template <class Param>
TorchState adam_state(const Param& state) {
  TorchState read{{{"exp_avg", state.exp_avg()}, {"exp_avg_sq", state.exp_avg_sq()}}, state.step()};
  if (state.max_exp_avg_sq().defined()) read.numbers["max_exp_avg_sq"] = state.max_exp_avg_sq();
  return read;
}

template <class Param>
std::unique_ptr<torch::optim::OptimizerParamState> adam_of(const TorchState& state) {
  auto made = std::make_unique<Param>();
  made->step(*state.steps);
  made->exp_avg(state.numbers.at("exp_avg"));
  made->exp_avg_sq(state.numbers.at("exp_avg_sq"));
  if (state.numbers.contains("max_exp_avg_sq")) made->max_exp_avg_sq(state.numbers.at("max_exp_avg_sq"));
  return made;
}

bool has_momentum(const torch::optim::OptimizerOptions& options) {
  const auto* sgd = dynamic_cast<const torch::optim::SGDOptions*>(&options);
  return sgd && sgd->momentum() != 0;
}

bool has_amsgrad(const torch::optim::OptimizerOptions& options) {
  using namespace torch::optim;
  if (const auto* adam = dynamic_cast<const AdamOptions*>(&options)) return adam->amsgrad();
  const auto* adamw = dynamic_cast<const AdamWOptions*>(&options);
  return adamw && adamw->amsgrad();
}

}  // namespace

std::string kind_of(const torch::optim::Optimizer& optimizer) {
  using namespace torch::optim;
  if (dynamic_cast<const Adam*>(&optimizer)) return "adam";
  if (dynamic_cast<const AdamW*>(&optimizer)) return "adamw";
  if (dynamic_cast<const SGD*>(&optimizer)) return "sgd";
  throw ConfigError(
      {{"optimizer", "", "must be torch's Adam, AdamW or SGD: of others it is not known what they keep", ""}});
}

bool is_torchs_own(const torch::optim::Optimizer& optimizer) {
  const std::type_info& type = typeid(optimizer);
  return type == typeid(torch::optim::Adam) || type == typeid(torch::optim::AdamW) || type == typeid(torch::optim::SGD);
}

// An optimizer may have some of them only: others are updated by another one, or stay as they are.
void require_parameters_of(const std::vector<at::Tensor>& updated, const torch::optim::Optimizer& optimizer) {
  const auto is_trained = [](const at::Tensor& each) { return each.requires_grad(); };
  const auto has_some = [&](const torch::optim::OptimizerParamGroup& group) {
    return std::ranges::any_of(group.params(), [&](const at::Tensor& own) {
      return std::ranges::any_of(updated,
                                 [&](const at::Tensor& each) { return is_trained(each) && each.is_same(own); });
    });
  };
  if (std::ranges::none_of(updated, is_trained) || std::ranges::any_of(optimizer.param_groups(), has_some)) return;
  throw ConfigError({{"optimizer", "", "must have tensors of this model's parameters(): it has none of them", ""}});
}

std::vector<std::string> names_of_numbers(const torch::optim::Optimizer& optimizer) {
  if (counts_steps(optimizer)) return {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"};
  return {"momentum_buffer"};
}

std::vector<std::string> names_of_kept(const torch::optim::Optimizer& optimizer) {
  const auto any = [&](bool (*has)(const torch::optim::OptimizerOptions&)) {
    return std::ranges::any_of(optimizer.param_groups(), [&](const auto& group) { return has(group.options()); });
  };
  std::vector<std::string> names = names_of_numbers(optimizer);
  if (!any(counts_steps(optimizer) ? has_amsgrad : has_momentum)) names.pop_back();  // max_exp_avg_sq, or the only one
  return names;
}

bool is_amsgrad(const torch::optim::Optimizer& optimizer, const at::Tensor& updated) {
  return std::ranges::any_of(optimizer.param_groups(), [&](const torch::optim::OptimizerParamGroup& group) {
    const auto is_updated = [&](const at::Tensor& param) { return param.is_same(updated); };
    return has_amsgrad(group.options()) && std::ranges::any_of(group.params(), is_updated);
  });
}

bool counts_steps(const torch::optim::Optimizer& optimizer) { return kind_of(optimizer) != "sgd"; }

std::optional<TorchState> find_state(const torch::optim::Optimizer& optimizer, const at::Tensor& updated) {
  using namespace torch::optim;
  const auto found = optimizer.state().find(updated.unsafeGetTensorImpl());
  if (found == optimizer.state().end()) return std::nullopt;
  const OptimizerParamState& state = *found->second;
  if (const auto* adam = dynamic_cast<const AdamParamState*>(&state)) return adam_state(*adam);
  if (const auto* adamw = dynamic_cast<const AdamWParamState*>(&state)) return adam_state(*adamw);
  const auto& sgd = dynamic_cast<const SGDParamState&>(state);
  if (!sgd.momentum_buffer().defined()) return TorchState();
  return TorchState{{{"momentum_buffer", sgd.momentum_buffer()}}, {}};
}

std::unique_ptr<torch::optim::OptimizerParamState> made_state(const torch::optim::Optimizer& optimizer,
                                                              const TorchState& state) {
  using namespace torch::optim;
  if (dynamic_cast<const Adam*>(&optimizer)) return adam_of<AdamParamState>(state);
  if (dynamic_cast<const AdamW*>(&optimizer)) return adam_of<AdamWParamState>(state);
  auto made = std::make_unique<SGDParamState>();
  made->momentum_buffer(state.numbers.at("momentum_buffer"));
  return made;
}

}  // namespace braid::modules
