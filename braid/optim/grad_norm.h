// The global gradient norm, derived from each parameter's Placement.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::optim {

// The names of the whole model's parameters in one fixed order, which is that of the norm vector. It is the same on
// every rank.
using ParamOrder = std::vector<std::string>;

// The index of each name in an order.
using ParamPlaces = std::unordered_map<std::string_view, int64_t>;
ParamPlaces places_of(const ParamOrder& order);  // REQUIRES: `order` outlives the result

// The gradient norm of a model. Squares are summed in float64 over fixed blocks of ParamStore::kAlign elements in
// parameter order. Each element counts once over the ranks of `model`, which are those of one replica, along all axes
// but data: copies along its axes and the second use of a tied parameter do not count. The result is bitwise the same
// for every pipe size and sharding of gradients, and under Reduction::Reproducible on CPUs, where the sum of each
// parameter is exact (exact_squares.h), for every tensor size.
//
// The norm is computed in two halves, so that other messages between the ranks travel at the same time. `counts`
// returns true if this rank, or the ranks that it shards gradients with, count a parameter. `shards` are the ranks that
// shard the gradients, for which the first half waits; null: none. Collective over both groups.
class GradNormExchange {
 public:
  // Sums this rank's squares and starts the exchange. Returns before the data of the model's other ranks have arrived.
  GradNormExchange(const param::ParamStore& store, const ParamOrder& order,
                   const std::function<bool(const param::Parameter&)>& counts, Communicator& model,
                   Communicator* shards = nullptr);

  // Returns the norm of the parameters that this rank counts.
  double own() const { return own_; }
  // Returns the squares of the parameters that this rank counts, by index in the order; zeros for the others.
  std::span<const double> own_squares() const { return own_squares_; }
  // Returns the norm of all parameters. Blocks until the exchange is done.
  double finish();
  // Returns the squares of all parameters, by index in the order. REQUIRES: finish() has been called.
  const std::vector<double>& squares() const { return of_params_; }

 private:
  // Returns the squares of a parameter, by its place in the order, from those of one rank or of all.
  double sum_of(const double* squares, int64_t place) const;

  bool is_exact_ = false;
  at::Tensor squares_;  // float64, ranks x parameters x bins, or x 1
  std::vector<double> own_squares_;
  double own_ = 0;
  int rank_;
  std::vector<double> of_params_;
  Work work_;
};

// Runs both halves and returns the norm.
double global_grad_norm(const param::ParamStore& store, const ParamOrder& order,
                        const std::function<bool(const param::Parameter&)>& counts, Communicator& model,
                        Communicator* shards = nullptr);

// Returns min(1, clip_norm / (norm + 1e-6)), or 1 if clip_norm is 0 (as torch.nn.utils.clip_grad_norm_).
double clip_scale(double norm, double clip_norm);

}  // namespace braid::optim
