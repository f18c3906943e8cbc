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

#include "braid/base/host_device.h"
#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"

namespace braid::optim {

// Sums of squares over a flat buffer as teams of threads form them (a block on a device, threads of the host in tests).
//
// A Team has rank(), size() and sum(values), which adds up each of a few values over its threads, for all of them.
inline constexpr int64_t kFlatBlock = 1024;  // elements

// Slice s has the blocks first_block[s] .. first_block[s + 1] - 1.
template <class T>
struct FlatSquares {
  const T* values;
  int64_t num_blocks, num_slices;
  const int64_t* first_block;  // num_slices + 1
  double* of_blocks;           // written on the way
  double* of_slices;
};

template <class T, class Team>
BRAID_HOST_DEVICE void team_square_block(const FlatSquares<T>& a, int64_t block, const Team& team) {
  double sum[1] = {0};
  for (int64_t j = team.rank(); j < kFlatBlock; j += team.size()) {
    const double value = static_cast<double>(a.values[block * kFlatBlock + j]);
    sum[0] += value * value;
  }
  team.sum(sum);
  if (team.rank() == 0) a.of_blocks[block] = sum[0];
}

template <class T, class Team>
BRAID_HOST_DEVICE void team_sum_slice(const FlatSquares<T>& a, int64_t slice, const Team& team) {
  double sum[1] = {0};
  for (int64_t b = a.first_block[slice] + team.rank(); b < a.first_block[slice + 1]; b += team.size()) {
    sum[0] += a.of_blocks[b];
  }
  team.sum(sum);
  if (team.rank() == 0) a.of_slices[slice] = sum[0];
}

// The parameters of the whole model in one fixed order: entry names of the norm vector. Equal on every rank.
using ParamOrder = std::vector<std::string>;

// By name the place in an order.
using ParamPlaces = std::unordered_map<std::string_view, int64_t>;
ParamPlaces places_of(const ParamOrder& order);  // which outlives them

// Squares are summed in float64 over fixed blocks of ParamStore::kAlign elements in parameter order, each element once
// over `groups.model`: copies along its axes and the second place of a tied parameter do not count. Bitwise the same
// for every pipe size, and however gradients are sharded. `counts` says whether this rank, or the ranks that it shards
// gradients with, count a parameter. Collective over both groups.
//
// In two halves, so that what else ranks tell each other travels at the same time.
struct NormGroups {
  Communicator& model;             // the ranks of one replica: along all axes but data
  Communicator* shards = nullptr;  // the ranks that shard the gradients, waited for in the first half; null: none
};

class GradNormExchange {
 public:
  // Sums this rank's squares and starts the exchange; returns before the others of the model have arrived.
  GradNormExchange(const param::ParamStore& store, const ParamOrder& order,
                   const std::function<bool(const param::Parameter&)>& counts, NormGroups groups);

  // The norm of what this rank counts.
  double own() const { return own_; }
  // By place in the order, the squares of what this rank counts; zeros for the others.
  std::span<const double> own_squares() const;
  // The norm of all. Blocks.
  double finish();
  // After finish(), by place in the order: of all.
  const std::vector<double>& squares() const { return of_params_; }

 private:
  at::Tensor squares_;  // float64, ranks x parameters
  double own_ = 0;
  int rank_;
  std::vector<double> of_params_;
  Work work_;
};

// Both halves at once.
double global_grad_norm(const param::ParamStore& store, const ParamOrder& order,
                        const std::function<bool(const param::Parameter&)>& counts, NormGroups groups);

// min(1, clip_norm / (norm + 1e-6)), 1 when clip_norm is 0 (as torch.nn.utils.clip_grad_norm_).
double clip_scale(double norm, double clip_norm);

}  // namespace braid::optim
