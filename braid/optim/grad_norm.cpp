// The gradient norm. Squares are summed per block on this rank, then per parameter over the ranks, then over
// parameters, each in a fixed order.
#include "braid/optim/grad_norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <mutex>
#include <numeric>
#include <optional>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"
#include "braid/mesh/flat_range.h"
#include "braid/optim/exact_squares.h"
#include "braid/optim/on_device.h"

namespace braid::optim {
namespace {

constexpr int64_t kAlign = param::ParamStore::kAlign;
constexpr int64_t kNormGrain = 32;  // blocks

int64_t first_block(const param::Parameter& param) { return param.offset / kAlign; }
int64_t end_block(const param::Parameter& param) { return (param.offset + param.num_elements() + kAlign - 1) / kAlign; }

typedef double Doubles __attribute__((vector_size(32)));

template <class T>
Doubles four(const T* values) {
  return Doubles{static_cast<double>(values[0]), static_cast<double>(values[1]), static_cast<double>(values[2]),
                 static_cast<double>(values[3])};
}

// Keeps sixteen running sums in four registers, so that additions do not wait for each other.
template <class T>
double block_squares(const T* values) {
  Doubles a{}, b{}, c{}, d{};
  for (const T* end = values + kAlign; values != end; values += 16) {
    const Doubles e = four(values), f = four(values + 4), g = four(values + 8), h = four(values + 12);
    a += e * e, b += f * f, c += g * g, d += h * h;
  }
  const Doubles sum = (a + b) + (c + d);
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

// Returns the elements of `param` that another rank counts: copies of rows, but for the first.
std::vector<mesh::ElementRun> uncounted(const param::Parameter& param) {
  std::vector<mesh::Piece> pieces = param.placement.pieces;
  std::erase_if(pieces, [](const mesh::Piece& piece) { return piece.copy == 0; });
  return pieces.empty() ? std::vector<mesh::ElementRun>() : mesh::runs_of(pieces, param.placement.local_shape);
}

// Returns the sum of squares of a block's elements that are not in `runs`. `begin` is the block's first element, as the
// runs count.
template <class T>
double squares_outside(const T* values, int64_t begin, const std::vector<mesh::ElementRun>& runs) {
  double sum = 0;
  for (int64_t i = 0; i < kAlign; ++i) {
    const auto has = [&](const mesh::ElementRun& run) { return run.begin <= begin + i && begin + i < run.end; };
    if (std::ranges::none_of(runs, has)) sum += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  }
  return sum;
}

// Writes the sums of squares of the blocks of kAlign elements that `param` has in `range`, whose gradients are `grad`.
template <class T>
void square_blocks(const param::OwnedRange& range, const at::Tensor& grad, const param::Parameter& param,
                   double* of_blocks) {
  const T* values = grad.const_data_ptr<T>() - range.begin;
  const int64_t begin = std::max(range.begin / kAlign, first_block(param));
  const int64_t end = std::min(range.end / kAlign, end_block(param));
  if (begin >= end) return;
  const std::vector<mesh::ElementRun> runs = uncounted(param);
  at::parallel_for(begin, end, kNormGrain, [&](int64_t first, int64_t last) {
    for (int64_t b = first; b < last; ++b) {
      const int64_t at = b * kAlign - param.offset;
      const auto meets = [&](const mesh::ElementRun& run) { return run.begin < at + kAlign && at < run.end; };
      const T* const block = values + b * kAlign;
      of_blocks[b] = std::ranges::any_of(runs, meets) ? squares_outside(block, at, runs) : block_squares(block);
    }
  });
}

// Adds the squares of the blocks that `param` has in `range`, whose gradients are `grad`, to its bins.
template <class T>
void add_exact_squares(const param::OwnedRange& range, const at::Tensor& grad, const param::Parameter& param,
                       double* bins) {
  const T* values = grad.const_data_ptr<T>() - range.begin;
  const int64_t begin = std::max(range.begin / kAlign, first_block(param));
  const int64_t end = std::min(range.end / kAlign, end_block(param));
  const std::vector<mesh::ElementRun> runs = uncounted(param);
  std::mutex lock;
  at::parallel_for(begin, std::max(begin, end), kNormGrain, [&](int64_t first, int64_t last) {
    SquareBins own{};
    std::vector<T> counted(kAlign);
    for (int64_t b = first; b < last; ++b) {
      std::copy_n(values + b * kAlign, kAlign, counted.begin());
      for (const mesh::ElementRun& run : runs) {
        const int64_t at = b * kAlign - param.offset, from = std::max<int64_t>(run.begin - at, 0);
        const int64_t to = std::min(run.end - at, kAlign);
        if (from < to) std::fill(counted.begin() + from, counted.begin() + to, T(0));
      }
      add_squares(runs.empty() ? values + b * kAlign : counted.data(), kAlign, own.data());
    }
    const std::scoped_lock hold(lock);
    for (int k = 0; k < kNumBins; ++k) bins[k] += own[k];  // exact, so in any order
  });
}

// The sums of squares by parameter and bin, for gradients on the host.
class HostBins {
 public:
  HostBins(const param::ParamStore& store, const std::function<bool(const param::Parameter&)>& counts,
           Communicator* shards)
      : bins_(at::zeros({static_cast<int64_t>(store.params().size()), kNumBins}, at::kDouble)) {
    for (const param::OwnedRange& range : store.owned()) {
      const at::Tensor grad = store.in_memory(range.grad);
      const bool is_double = grad.scalar_type() == at::kDouble;
      for (const param::Parameter& param : store.params()) {
        if (!shards && !counts(param)) continue;  // with shards, another rank may count it
        double* const bins = of(param);
        is_double ? add_exact_squares<double>(range, grad, param, bins)
                  : add_exact_squares<float>(range, grad, param, bins);
      }
    }
    if (shards) shards->all_reduce(bins_, ReduceOp::Sum).wait_host();
  }

  double* of(const param::Parameter& param) const { return bins_.mutable_data_ptr<double>() + param.index * kNumBins; }

 private:
  at::Tensor bins_;
};

// The sums of squares by parameter, for gradients on the host. The padding of a slice up to a whole block is zero. For
// blocks that other ranks own, this rank adds exact zeros to the all-reduce.
class HostSquares {
 public:
  HostSquares(const param::ParamStore& store, const std::function<bool(const param::Parameter&)>& counts,
              Communicator* shards)
      : blocks_(at::zeros({store.num_flat() / kAlign}, at::kDouble)) {
    for (const param::OwnedRange& range : store.owned()) {
      const at::Tensor grad = store.in_memory(range.grad);
      const bool is_double = grad.scalar_type() == at::kDouble;
      for (const param::Parameter& param : store.params()) {
        if (!shards && !counts(param)) continue;  // with shards, another rank may count it
        double* of_blocks = blocks_.mutable_data_ptr<double>();
        is_double ? square_blocks<double>(range, grad, param, of_blocks)
                  : square_blocks<float>(range, grad, param, of_blocks);
      }
    }
    if (shards) shards->all_reduce(blocks_, ReduceOp::Sum).wait_host();
  }

  double operator()(const param::Parameter& param) const {
    const double* of_blocks = blocks_.const_data_ptr<double>();
    return std::accumulate(of_blocks + first_block(param), of_blocks + end_block(param), 0.0);
  }

 private:
  at::Tensor blocks_;
};

}  // namespace

ParamPlaces places_of(const ParamOrder& order) {
  ParamPlaces places;
  for (const std::string& name : order) places.emplace(name, places.size());
  return places;
}

GradNormExchange::GradNormExchange(const param::ParamStore& store, const ParamOrder& order,
                                   const std::function<bool(const param::Parameter&)>& counts, Communicator& model,
                                   Communicator* shards)
    : rank_(model.rank()) {
  const comm::CallName name("gradient norm");
  const ParamPlaces places = places_of(order);
  check(places.size() == order.size(), "the order names each parameter once");

  const bool on_host = store.flat_grads().is_cpu();
  is_exact_ = on_host && store.reduction() == Reduction::Reproducible;
  const int64_t num_params = static_cast<int64_t>(order.size());
  squares_ = at::zeros({model.size(), num_params, is_exact_ ? kNumBins : 1}, at::kDouble);
  const at::Tensor own = squares_[rank_];
  model.queue().drain();  // gradients are read here, on the host
  std::optional<HostSquares> of_host;
  std::optional<HostBins> bins;
  std::vector<double> of_device;
  if (is_exact_) {
    bins.emplace(store, counts, shards);
  } else if (on_host) {
    of_host.emplace(store, counts, shards);
  } else {
    of_device = on_device::squares(store);
  }
  for (const param::Parameter& param : store.params()) {
    if (!counts(param)) continue;
    const auto place = places.find(param.name);
    if (place == places.end()) check(false, cat("the order does not name ", param.name));
    double* const squares = own.mutable_data_ptr<double>() + place->second * squares_.size(2);
    if (bins) std::copy_n(bins->of(param), kNumBins, squares);
    if (!bins) *squares = of_host ? (*of_host)(param) : of_device[param.index];
  }
  for (int64_t p = 0; p < num_params; ++p) own_squares_.push_back(sum_of(own.const_data_ptr<double>(), p));
  own_ = std::sqrt(std::accumulate(own_squares_.begin(), own_squares_.end(), 0.0));
  work_ = model.all_gather(squares_, own);
}

double GradNormExchange::sum_of(const double* squares, int64_t place) const {
  return is_exact_ ? sum_of_bins(squares + place * kNumBins) : squares[place];
}

double GradNormExchange::finish() {
  work_.wait_host();
  const int64_t num_ranks = squares_.size(0), num_params = squares_.size(1);
  // Adds rank by rank, not in the communicator's tree. Ranks without a part of a parameter add an exact zero. So a
  // parameter's sum has the same bits however many stages lie between its tensor ranks.
  double* const sums = squares_.mutable_data_ptr<double>();
  const int64_t count = num_params * squares_.size(2);
  for (int64_t r = 1; r < num_ranks; ++r) {
    for (int64_t i = 0; i < count; ++i) sums[i] += sums[r * count + i];
  }
  double total = 0;
  for (int64_t p = 0; p < num_params; ++p) {
    of_params_.push_back(sum_of(sums, p));
    total += of_params_.back();
  }
  return std::sqrt(total);
}

double global_grad_norm(const param::ParamStore& store, const ParamOrder& order,
                        const std::function<bool(const param::Parameter&)>& counts, Communicator& model,
                        Communicator* shards) {
  return GradNormExchange(store, order, counts, model, shards).finish();
}

double clip_scale(double norm, double clip_norm) {
  return clip_norm == 0 ? 1.0 : std::min(1.0, clip_norm / (norm + 1e-6));
}

}  // namespace braid::optim
