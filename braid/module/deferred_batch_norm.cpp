// Moments of microbatches are merged pairwise (Chan, Golub and LeVeque, 1979), which loses nothing to cancellation.
#include "braid/module/deferred_batch_norm.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/modules/batchnorm.h>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/communicator.h"

namespace braid {
namespace {

at::Tensor merged(const at::Tensor& a, const at::Tensor& b) {
  const double count_a = a[0].item<double>(), count_b = b[0].item<double>(), count = count_a + count_b;
  if (count_a == 0) return b;
  if (count_b == 0) return a;
  const int64_t features = (a.numel() - 1) / 2;
  const auto mean = [&](const at::Tensor& moments) { return moments.narrow(0, 1, features); };
  const auto squares = [&](const at::Tensor& moments) { return moments.narrow(0, 1 + features, features); };
  const at::Tensor distance = mean(b) - mean(a);
  return at::cat({at::full({1}, count, a.options()), mean(a) + distance * (count_b / count),
                  squares(a) + squares(b) + distance * distance * (count_a * count_b / count)});
}

// A BatchNorm of any dimension as a deferred one over the same tensors; null for other modules.
template <class... BatchNorms>
std::shared_ptr<DeferredBatchNormImpl> deferred(const torch::nn::Module& module) {
  std::shared_ptr<DeferredBatchNormImpl> result;
  const auto take = [&](const auto* norm) {
    if (!norm) return;
    const DeferredBatchNormImpl::State state{norm->weight, norm->bias, norm->running_mean, norm->running_var,
                                             norm->num_batches_tracked};
    result = std::make_shared<DeferredBatchNormImpl>(norm->options, state);
    result->train(norm->is_training());
  };
  (take(dynamic_cast<const BatchNorms*>(&module)), ...);
  return result;
}

std::shared_ptr<DeferredBatchNormImpl> deferred_of(const torch::nn::Module& module) {
  using namespace torch::nn;
  return deferred<BatchNorm1dImpl, BatchNorm2dImpl, BatchNorm3dImpl>(module);
}

}  // namespace

DeferredBatchNormImpl::DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options) : options_(options) {
  DeferredBatchNormImpl::reset();
}

DeferredBatchNormImpl::DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options, State shared)
    : options_(options) {
  adopt(std::move(shared));
}

void DeferredBatchNormImpl::reset() {
  const int64_t features = options_.num_features();
  State fresh;
  if (options_.affine()) {
    fresh.weight = at::ones({features}).requires_grad_(true);
    fresh.bias = at::zeros({features}).requires_grad_(true);
  }
  if (options_.track_running_stats()) {
    fresh.running_mean = at::zeros({features});
    fresh.running_var = at::ones({features});
    fresh.num_batches_tracked = at::zeros({}, at::kLong);
  }
  adopt(std::move(fresh));
}

void DeferredBatchNormImpl::adopt(State state) {
  const auto parameter = [&](const char* name, const at::Tensor& tensor) {
    return register_parameter(name, tensor, tensor.defined() && tensor.requires_grad());
  };
  state_.weight = parameter("weight", state.weight);
  state_.bias = parameter("bias", state.bias);
  state_.running_mean = register_buffer("running_mean", state.running_mean);
  state_.running_var = register_buffer("running_var", state.running_var);
  state_.num_batches_tracked = register_buffer("num_batches_tracked", state.num_batches_tracked);
}

at::Tensor DeferredBatchNormImpl::forward(at::Tensor x) {
  const bool by_itself = is_training() || !options_.track_running_stats();
  if (by_itself && options_.track_running_stats() && context_.purpose == ForwardPurpose::Training) count(x);
  const at::Tensor none;
  const auto& mean = by_itself ? none : state_.running_mean;
  const auto& variance = by_itself ? none : state_.running_var;
  return at::batch_norm(x, state_.weight, state_.bias, mean, variance, by_itself, 0, options_.eps(), false);
}

void DeferredBatchNormImpl::begin_microbatch(const MicrobatchContext& context) { context_ = context; }

void DeferredBatchNormImpl::count(const at::Tensor& x) {
  const c10::AutoGradMode no_grad(false);
  const int64_t features = options_.num_features();
  const at::Tensor rows = x.detach().to(at::kDouble).transpose(0, 1).reshape({features, -1});
  const at::Tensor mean = rows.mean(1);
  const at::Tensor squares = (rows - mean.unsqueeze(1)).square().sum(1);
  const at::Tensor count = at::full({1}, static_cast<double>(rows.size(1)), rows.options());
  moments_[context_.micro] = at::cat({count, mean, squares});
}

void DeferredBatchNormImpl::end_step(Communicator& data) {
  context_.purpose = ForwardPurpose::Evaluation;
  if (!options_.track_running_stats() || !is_training()) return;
  const c10::AutoGradMode no_grad(false);
  const int64_t width = 1 + 2 * options_.num_features();
  at::Tensor moments = at::zeros({width}, at::kDouble);
  for (const auto& [micro, of_micro] : moments_) moments = merged(moments, of_micro.cpu());
  moments_.clear();
  const at::Tensor everyones = at::empty({data.size() * width}, at::kDouble);
  data.all_gather(everyones, moments).wait_host();
  at::Tensor all = everyones.narrow(0, 0, width);
  for (int rank = 1; rank < data.size(); ++rank) all = merged(all, everyones.narrow(0, rank * width, width));
  if (all[0].item<double>() > 0) move_running(all);
}

void DeferredBatchNormImpl::move_running(const at::Tensor& moments) {
  state_.num_batches_tracked.add_(1);
  const double step =
      options_.momentum().has_value() ? *options_.momentum() : 1.0 / state_.num_batches_tracked.item<double>();
  const double count = moments[0].item<double>();
  const int64_t features = options_.num_features();
  const auto move = [&](at::Tensor& running, const at::Tensor& now) {
    running.mul_(1 - step).add_(now.to(running.options()), step);
  };
  move(state_.running_mean, moments.narrow(0, 1, features));
  move(state_.running_var, moments.narrow(0, 1 + features, features) / std::max(count - 1, 1.0));
}

std::vector<std::string> defer_batch_norms(LayerList& layers) {
  std::vector<std::string> unreached;
  for (int index = 0; index < layers.size(); ++index) {
    const auto& module = layers[index].module;
    if (!module) continue;
    if (auto norm = deferred_of(*module)) {
      layers.replace(index, std::move(norm));
      continue;
    }
    for (const auto& item : module->named_modules(layers[index].name, false)) {
      if (deferred_of(*item.value())) unreached.push_back(item.key());
    }
  }
  return unreached;
}

}  // namespace braid
