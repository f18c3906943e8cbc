// Shared parts of the batch norms here: the tensors of a torch BatchNorm, and the moments of a minibatch of which each
// rank or microbatch sees a part.
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
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;  // undefined where options leave them out
};

// Ones and zeros, as a new torch BatchNorm has them.
BatchNormState fresh_batch_norm(const torch::nn::BatchNormOptions& options);
// Registers the tensors with `module` under BatchNorm's names and returns the registered ones.
BatchNormState registered(const BatchNormState& state, torch::nn::Module& module);

// The options and the tensors (shared, not copied) of a BatchNorm1d, 2d or 3d; nullopt for other modules.
struct BatchNormParts {
  torch::nn::BatchNormOptions options;
  BatchNormState state;
};
std::optional<BatchNormParts> batch_norm_parts(const torch::nn::Module& module);

// The moments of each feature's values in `x` (rows, features, ...), [1 + 2 features] of float64 on the host: the
// number of values per feature, then the means, then the sums of squared distances from the means.
at::Tensor batch_moments(const at::Tensor& x);
// The moments of the values behind `a` and `b` together. Source: Chan, Golub and LeVeque, "Updating Formulae and a
// Pairwise Algorithm for Computing Sample Variances" (1979): nothing is lost to cancellation.
at::Tensor merged_moments(const at::Tensor& a, const at::Tensor& b);
// The moments of all ranks' values, merged in the order of ranks, so the same bits on each. Collective.
at::Tensor moments_of_all(const at::Tensor& own, Communicator& group);

// Moves the running statistics by one minibatch, as BatchNorm does: by options.momentum, or to the plain average of all
// minibatches; with the unbiased variance.
void move_running(BatchNormState& state, const torch::nn::BatchNormOptions& options, const at::Tensor& moments);

}  // namespace braid::modules
