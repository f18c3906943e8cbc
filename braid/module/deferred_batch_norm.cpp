// Batch norms that update running statistics once per step from all microbatches, and their insertion into layers.
#include "braid/module/deferred_batch_norm.h"

#include <ATen/ops/batch_norm.h>
#include <ATen/ops/zeros.h>

#include "braid/comm/communicator.h"

namespace braid {
namespace {

// Returns a deferred batch norm with the tensors of a BatchNorm of any dimension; null for other modules.
std::shared_ptr<DeferredBatchNormImpl> deferred_of(const torch::nn::Module& module) {
  const auto parts = modules::batch_norm_parts(module);
  if (!parts) return nullptr;
  auto norm = std::make_shared<DeferredBatchNormImpl>(parts->options, parts->state);
  norm->train(module.is_training());
  return norm;
}

}  // namespace

DeferredBatchNormImpl::DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options) : options_(options) {
  DeferredBatchNormImpl::reset();
}

DeferredBatchNormImpl::DeferredBatchNormImpl(const torch::nn::BatchNormOptions& options,
                                             const modules::BatchNormState& shared)
    : options_(options), state_(modules::registered(shared, *this)) {}

void DeferredBatchNormImpl::reset() { state_ = modules::registered(modules::fresh_batch_norm(options_), *this); }

at::Tensor DeferredBatchNormImpl::forward(at::Tensor x) {
  const bool by_itself = is_training() || !options_.track_running_stats();
  if (by_itself && options_.track_running_stats() && context_.purpose == modules::ForwardPurpose::Training) {
    moments_[context_.micro] = modules::batch_moments(x);
  }
  const at::Tensor none;
  const auto& mean = by_itself ? none : state_.running_mean;
  const auto& variance = by_itself ? none : state_.running_var;
  return at::batch_norm(x, state_.weight, state_.bias, mean, variance, by_itself, 0, options_.eps(), false);
}

void DeferredBatchNormImpl::begin_microbatch(const modules::MicrobatchContext& context) {
  if (context.step != context_.step) moments_.clear();  // moments of a step that failed
  context_ = context;
}

std::function<void()> DeferredBatchNormImpl::capture_state() {
  return [this, context = context_, moments = moments_] {
    context_ = context;
    moments_ = moments;
  };
}

// Takes part in the collective even if this rank's module is in evaluation mode and has no moments, because other
// ranks' modules may train.
void DeferredBatchNormImpl::end_step(Communicator& data) {
  context_.purpose = modules::ForwardPurpose::Evaluation;
  if (!options_.track_running_stats()) return;
  at::Tensor moments = at::zeros({1 + 2 * options_.num_features()}, at::kDouble);
  for (const auto& [micro, of_micro] : moments_) moments = modules::merged_moments(moments, of_micro);
  moments_.clear();
  const at::Tensor all = modules::moments_of_all(moments, data);
  if (all[0].item<double>() > 0) modules::move_running(state_, options_, all);
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
      if (modules::batch_norm_parts(*item.value())) unreached.push_back(item.key());
    }
  }
  return unreached;
}

}  // namespace braid
