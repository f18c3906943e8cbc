// The divisors of torch's losses. Source: aten/src/ATen/native/LossNLL.cpp, cross_entropy_loss and nll_loss.
#include "braid/module/loss_function.h"

#include <ATen/core/Reduction.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/nll_loss_nd.h>
#include <torch/nn/modules/loss.h>

#include <typeinfo>
#include <variant>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// Returns the sum of the class weights of all labels that are not ignored; without weights, their number.
double counted_labels(const at::Tensor& labels, const at::Tensor& weight, int64_t ignored) {
  const at::Tensor counts = labels.ne(ignored);
  if (!weight.defined()) return counts.sum().item<double>();
  return weight.index_select(0, labels.masked_select(counts)).sum(at::kDouble).item<double>();
}

// Returns true if the module is exactly torch's class and gives a mean. A subclass may compute something else.
template <class Module>
bool gives_mean(const Module& module) {
  return typeid(module) == typeid(Module) && std::holds_alternative<torch::enumtype::kMean>(module.options.reduction());
}

}  // namespace

const at::Tensor& LossFunction::one(const Tensors& tensors, const char* what) {
  if (tensors.size() == 1) return tensors[0];
  throw ConfigError({{"loss", cat(tensors.size(), " tensors"), cat("takes one ", what, "; must take lists"), ""}});
}

LossFunction LossFunction::of(const std::shared_ptr<torch::nn::CrossEntropyLossImpl>& module) {
  if (!gives_mean(*module)) return {};
  return [module](const at::Tensor& output, const at::Tensor& target) {
    const auto& options = module->options;
    const at::Tensor sum = at::cross_entropy_loss(output, target, module->weight, at::Reduction::Sum,
                                                  options.ignore_index(), options.label_smoothing());
    const bool probabilities = output.sizes() == target.sizes();
    const double count = probabilities ? static_cast<double>(output.numel() / output.size(1))
                                       : counted_labels(target, module->weight, options.ignore_index());
    return std::pair(sum, count);
  };
}

LossFunction LossFunction::of(const std::shared_ptr<torch::nn::NLLLossImpl>& module) {
  if (!gives_mean(*module)) return {};
  return [module](const at::Tensor& output, const at::Tensor& target) {
    const int64_t ignored = module->options.ignore_index();
    const at::Tensor sum = at::nll_loss_nd(output, target, module->weight, at::Reduction::Sum, ignored);
    return std::pair(sum, counted_labels(target, module->weight, ignored));
  };
}

}  // namespace braid
