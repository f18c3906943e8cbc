// What the batch normalizations of this room share: the tensors of a torch BatchNorm, and moments of minibatches that
// nobody sees whole. It knows neither microbatches nor autograd.
#pragma once

#include <torch/nn/options/batchnorm.h>

#include <optional>

namespace torch::nn {
class Module;
}  // namespace torch::nn

namespace braid {

class Communicator;

struct BatchNormState {
  at::Tensor weight, bias, running_mean, running_var, num_batches_tracked;  // undefined where options leave them out
};

// Ones and zeros, as a new torch BatchNorm has them.
BatchNormState fresh_batch_norm(const torch::nn::BatchNormOptions& options);
// Registers the tensors with `module` under BatchNorm's names; gives them as they are registered.
BatchNormState registered(const BatchNormState& state, torch::nn::Module& module);

// Of a BatchNorm1d, 2d or 3d, whose tensors the state shares; nothing for other modules.
struct BatchNormParts {
  torch::nn::BatchNormOptions options;
  BatchNormState state;
};
std::optional<BatchNormParts> batch_norm_parts(const torch::nn::Module& module);

// The moments of the values that `x` (rows, features, ...) has of each feature: how many they are, then the means, then
// the sums of squared distances from them; 1 + 2 features numbers, float64, on the host.
at::Tensor batch_moments(const at::Tensor& x);
// Those of the values of both. Source: Chan, Golub and LeVeque, "Updating Formulae and a Pairwise Algorithm for
// Computing Sample Variances" (1979): nothing is lost to cancellation.
at::Tensor merged_moments(const at::Tensor& a, const at::Tensor& b);
// Those of the values of all ranks, merged in the order of ranks: the same bits on each. Collective.
at::Tensor moments_of_all(const at::Tensor& own, Communicator& group);

// Moves the running statistics by one minibatch, as BatchNorm does: by options.momentum, or to the plain average of all
// minibatches; with the unbiased variance.
void move_running(BatchNormState& state, const torch::nn::BatchNormOptions& options, const at::Tensor& moments);

}  // namespace braid
