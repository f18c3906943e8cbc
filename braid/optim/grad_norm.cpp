// Sums of squares: per block on this rank, per parameter over the ranks, then over parameters, each in a fixed order.
#include "braid/optim/grad_norm.h"

#include <ATen/Parallel.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/optim/on_device.h"

namespace braid {
namespace {

constexpr int64_t kAlign = ParamStore::kAlign;
constexpr int64_t kGrain = 32;  // blocks

typedef double Doubles __attribute__((vector_size(32)));

template <class T>
Doubles four(const T* values) {
  return Doubles{static_cast<double>(values[0]), static_cast<double>(values[1]), static_cast<double>(values[2]),
                 static_cast<double>(values[3])};
}

// Sixteen running sums in four registers, so that additions do not wait for one another.
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

// The slice is followed by zeros up to a whole block.
template <class T>
double squares(const Parameter& param, std::vector<double>& partials) {
  const int64_t num_blocks = (param.num_elements() + kAlign - 1) / kAlign;
  partials.resize(num_blocks);
  const T* values = param.main_grad.const_data_ptr<T>();
  at::parallel_for(0, num_blocks, kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) partials[b] = block_squares(values + b * kAlign);
  });
  double sum = 0;
  for (const double partial : partials) sum += partial;
  return sum;
}

double squares(const Parameter& param, std::vector<double>& partials) {
  const bool is_double = param.main_grad.scalar_type() == at::kDouble;
  return is_double ? squares<double>(param, partials) : squares<float>(param, partials);
}

}  // namespace

GradNormExchange::GradNormExchange(const ParamStore& store, const ParamOrder& order,
                                   const std::function<bool(const Parameter&)>& counts, Communicator& model_group) {
  std::unordered_map<std::string_view, int64_t> places;
  for (const std::string& name : order) places.emplace(name, places.size());
  check(places.size() == order.size(), "the order names each parameter once");

  squares_ = at::zeros({model_group.size(), static_cast<int64_t>(order.size())}, at::kDouble);
  const at::Tensor own = squares_[model_group.rank()];
  std::vector<double> partials;
  model_group.queue().drain();  // gradients are read here, on the host
  const bool on_host = store.flat_grads().is_cpu();
  const std::vector<double> of_device = on_host ? std::vector<double>() : on_device::squares(store);
  for (const Parameter& param : store.params()) {
    if (!counts(param)) continue;
    const auto place = places.find(param.name);
    if (place == places.end()) check(false, cat("the order does not name ", param.name));
    own.mutable_data_ptr<double>()[place->second] = on_host ? squares(param, partials) : of_device[param.index];
  }
  own_ = part(model_group.rank());
  work_ = model_group.all_gather(squares_, own);
}

double GradNormExchange::part(int rank) const {
  const int64_t num_params = squares_.size(1);
  const double* squares = squares_.const_data_ptr<double>() + rank * num_params;
  return std::sqrt(std::accumulate(squares, squares + num_params, 0.0));
}

double GradNormExchange::finish() {
  work_.wait_host();
  const int64_t num_ranks = squares_.size(0), num_params = squares_.size(1);
  // Rank by rank, not in the communicator's tree: ranks that hold nothing of a parameter add an exact zero, so however
  // many stages lie between the tensor ranks of a parameter, its sum has the same bits.
  const double* sums = squares_.const_data_ptr<double>();
  double total = 0;
  for (int64_t p = 0; p < num_params; ++p) {
    double of_param = 0;
    for (int64_t r = 0; r < num_ranks; ++r) of_param += sums[r * num_params + p];
    total += of_param;
  }
  return std::sqrt(total);
}

double global_grad_norm(const ParamStore& store, const ParamOrder& order,
                        const std::function<bool(const Parameter&)>& counts, Communicator& model_group) {
  return GradNormExchange(store, order, counts, model_group).finish();
}

double clip_scale(double norm, double clip_norm) {
  return clip_norm == 0 ? 1.0 : std::min(1.0, clip_norm / (norm + 1e-6));
}

}  // namespace braid
