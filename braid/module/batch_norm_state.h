// Shared parts of DeferredBatchNorm and SyncBatchNorm: the tensors of a torch BatchNorm, and the moments of a minibatch
// that is split over ranks or microbatches.
#pragma once

#include <torch/nn/options/batchnorm.h>

#include <optional>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace braid {
class Communicator;
}  // namespace braid

namespace braid::modules {

struct BatchNormState {
  // Tensors that the options exclude are undefined.
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

// Returns the tensors of a new torch BatchNorm: ones and zeros.
BatchNormState fresh_batch_norm(const torch::nn::BatchNormOptions& options);
// Registers the tensors with `module` under BatchNorm's names and returns the registered ones.
BatchNormState registered(const BatchNormState& state, torch::nn::Module& module);

// The options and the tensors (shared, not copied) of a BatchNorm1d, 2d or 3d.
struct BatchNormParts {
  torch::nn::BatchNormOptions options;
  BatchNormState state;
};
// Returns nullopt for other modules.
std::optional<BatchNormParts> batch_norm_parts(const torch::nn::Module& module);

// Returns the moments of each feature's values in `x`, of shape (rows, features, ...). The result is float64 of shape
// [1 + 2 features], on the host: the number of values per feature, then the means, then the sums of squared distances
// from the means.
at::Tensor batch_moments(const at::Tensor& x);
// Returns the moments of the values of `a` and `b` together, without cancellation. Source: Chan, Golub and LeVeque,
// "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979).
at::Tensor merged_moments(const at::Tensor& a, const at::Tensor& b);
// Collective. Returns the moments of all ranks' values, merged in the order of ranks, so every rank gets the same bits.
at::Tensor moments_of_all(const at::Tensor& own, Communicator& group);

// Updates the running statistics with one minibatch, as BatchNorm does. Uses options.momentum or, if that is not set,
// the plain average of all minibatches. The variance is the unbiased one.
void move_running(BatchNormState& state, const torch::nn::BatchNormOptions& options, const at::Tensor& moments);

}  // namespace braid::modules
