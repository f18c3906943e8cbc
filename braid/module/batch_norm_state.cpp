// The tensors of batch norms, and the merging of moments.
#include "braid/module/batch_norm_state.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>

#include <algorithm>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"

namespace braid::modules {
namespace {

template <class... BatchNorms>
std::optional<BatchNormParts> parts_of(const torch::nn::Module& module) {
  std::optional<BatchNormParts> parts;
  const auto take = [&](const auto* norm) {
    if (!norm) return;
    parts = {norm->options,
             {norm->weight, norm->bias, norm->running_mean, norm->running_var, norm->num_batches_tracked}};
  };
  (take(dynamic_cast<const BatchNorms*>(&module)), ...);
  return parts;
}

}  // namespace

BatchNormState fresh_batch_norm(const torch::nn::BatchNormOptions& options) {
  const int64_t features = options.num_features();
  BatchNormState fresh;
  if (options.affine()) {
    fresh.weight = at::ones({features}).requires_grad_(true);
    fresh.bias = at::zeros({features}).requires_grad_(true);
  }
  if (options.track_running_stats()) {
    fresh.running_mean = at::zeros({features});
    fresh.running_var = at::ones({features});
    fresh.num_batches_tracked = at::zeros({}, at::kLong);
  }
  return fresh;
}

BatchNormState registered(const BatchNormState& state, torch::nn::Module& module) {
  const auto parameter = [&](const char* name, const at::Tensor& tensor) {
    return module.register_parameter(name, tensor, tensor.defined() && tensor.requires_grad());
  };
  return {parameter("weight", state.weight), parameter("bias", state.bias),
          module.register_buffer("running_mean", state.running_mean),
          module.register_buffer("running_var", state.running_var),
          module.register_buffer("num_batches_tracked", state.num_batches_tracked)};
}

std::optional<BatchNormParts> batch_norm_parts(const torch::nn::Module& module) {
  using namespace torch::nn;
  return parts_of<BatchNorm1dImpl, BatchNorm2dImpl, BatchNorm3dImpl>(module);
}

at::Tensor batch_moments(const at::Tensor& x) {
  const c10::AutoGradMode no_grad(false);
  const int64_t features = x.size(1);
  const at::Tensor rows = x.detach().to(at::kDouble).transpose(0, 1).reshape({features, -1});
  if (rows.numel() == 0) return at::zeros({1 + 2 * features}, at::kDouble);
  const at::Tensor mean = rows.mean(1);
  const at::Tensor squares = (rows - mean.unsqueeze(1)).square().sum(1);
  const at::Tensor count = at::full({1}, static_cast<double>(rows.size(1)), rows.options());
  return at::cat({count, mean, squares}).cpu();
}

at::Tensor merged_moments(const at::Tensor& a, const at::Tensor& b) {
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

at::Tensor moments_of_all(const at::Tensor& own, Communicator& group) {
  const int64_t width = own.numel();
  const at::Tensor everyones = at::empty({group.size() * width}, at::kDouble);
  const comm::CallName name("batch norm");
  group.all_gather(everyones, own).wait_host();
  at::Tensor all = everyones.narrow(0, 0, width);
  for (int rank = 1; rank < group.size(); ++rank) all = merged_moments(all, everyones.narrow(0, rank * width, width));
  return all;
}

void move_running(BatchNormState& state, const torch::nn::BatchNormOptions& options, const at::Tensor& moments) {
  const c10::AutoGradMode no_grad(false);
  state.num_batches_tracked.add_(1);
  const double step =
      options.momentum().has_value() ? *options.momentum() : 1.0 / state.num_batches_tracked.item<double>();
  const double count = moments[0].item<double>();
  const int64_t features = options.num_features();
  const auto move = [&](at::Tensor& running, const at::Tensor& now) {
    running.mul_(1 - step).add_(now.to(running.options()), step);
  };
  move(state.running_mean, moments.narrow(0, 1, features));
  move(state.running_var, moments.narrow(0, 1 + features, features) / std::max(count - 1, 1.0));
}

}  // namespace braid::modules
