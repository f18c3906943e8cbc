// PowerSGD. LibTorch computes the products that are all-reduced before use, and the residual, which is this rank's own.
// The last product must have the same bits on every rank, so it is a plain loop.
#include "braid/sync/reducers/power_sgd_reducer.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/seeds.h"
#include "braid/param/memory_account.h"
#include "braid/sync/reducers/codec.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {
namespace {

template <class T>
class Columns {
 public:
  Columns(T* at, int64_t rows, int64_t columns) : at_(at), rows_(rows), columns_(columns) {}

  void make_orthonormal() const {
    constexpr double kRounding = 16 * static_cast<double>(std::numeric_limits<T>::epsilon());
    for (int64_t k = 0; k < columns_; ++k) {
      const double before = std::sqrt(dot(k, k));
      for (int pass = 0; pass < 2; ++pass) {
        for (int64_t j = 0; j < k; ++j) take_off(k, j, dot(k, j));
      }
      const double left = std::sqrt(dot(k, k));
      scale(k, left > kRounding * before || std::isnan(left) ? 1 / left : 0);
    }
  }

 private:
  T& at(int64_t row, int64_t column) const { return at_[row * columns_ + column]; }
  double dot(int64_t a, int64_t b) const {
    double sum = 0;
    for (int64_t i = 0; i < rows_; ++i) sum += static_cast<double>(at(i, a)) * static_cast<double>(at(i, b));
    return sum;
  }
  void take_off(int64_t from, int64_t what, double factor) const {
    for (int64_t i = 0; i < rows_; ++i) at(i, from) -= static_cast<T>(factor * static_cast<double>(at(i, what)));
  }
  void scale(int64_t column, double factor) const {
    for (int64_t i = 0; i < rows_; ++i) {
      at(i, column) = factor == 0 ? T{0} : static_cast<T>(factor * static_cast<double>(at(i, column)));
    }
  }

  T* const at_;
  const int64_t rows_, columns_;
};

}  // namespace

void make_orthonormal(const at::Tensor& columns) {
  with_elements(columns, [&](auto* at) { Columns(at, columns.size(0), columns.size(1)).make_orthonormal(); });
}

namespace {

struct Extents {
  int64_t rows = 1, columns = 1;
};

Extents extents(const std::vector<int64_t>& shape) {
  Extents of;
  if (shape.empty()) return of;
  of.rows = shape[0];
  for (size_t dim = 1; dim < shape.size(); ++dim) of.columns *= shape[dim];
  return of;
}

// Computes out = p q^T.
template <class T>
void multiply_out(const Extents& size, int64_t rank, const T* p, const T* q, T* out) {
  for (int64_t i = 0; i < size.rows; ++i) {
    for (int64_t j = 0; j < size.columns; ++j) {
      T sum = p[i * rank] * q[j * rank];
      for (int64_t k = 1; k < rank; ++k) sum += p[i * rank + k] * q[j * rank + k];
      out[i * size.columns + j] = sum;
    }
  }
}

}  // namespace

int64_t PowerSgdReducer::rank_of(const std::vector<int64_t>& shape, int rank) {
  const auto [rows, columns] = extents(shape);
  const int64_t used = std::min<int64_t>({rank, rows, columns});
  return shape.size() > 1 && used * (rows + columns) < rows * columns ? used : 0;
}

void PowerSgdReducer::plan(const GradLayout& layout) {
  residual_.plan(layout);
  buckets_ = layout.buckets;
  flights_.clear();
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  for (const BucketShape& bucket : buckets_) flights_.push_back(make_flight(bucket, layout.options));
}

PowerSgdReducer::Flight PowerSgdReducer::make_flight(const BucketShape& bucket, const at::TensorOptions& options) {
  Flight flight;
  int64_t num_first = 0, num_second = 0;
  for (const GradSlice& slice : bucket.slices) {
    const auto [rows, columns] = extents(slice.shape);
    const int64_t rank = rank_of(slice.shape, rank_);
    num_first += rank > 0 ? rows * rank : rows * columns;
    num_second += columns * rank;
  }
  flight.first = at::empty({num_first}, options);
  flight.second = at::empty({num_second}, options);
  num_first = num_second = 0;
  for (const GradSlice& slice : bucket.slices) {
    const auto [rows, columns] = extents(slice.shape);
    const int64_t rank = rank_of(slice.shape, rank_);
    if (rank == 0) {
      flight.wholes.push_back({slice, flight.first.narrow(0, num_first, rows * columns)});
      num_first += rows * columns;
      continue;
    }
    const auto p_message = flight.first.narrow(0, num_first, rows * rank).view({rows, rank});
    const auto q_message = flight.second.narrow(0, num_second, columns * rank).view({columns, rank});
    flight.matrices.push_back({slice, residual_.of(slice).view({rows, columns}), at::empty({rows, rank}, options),
                               at::empty({columns, rank}, options), p_message, q_message});
    num_first += rows * rank;
    num_second += columns * rank;
    if (directions_.contains(slice.name)) continue;
    fill_directions(slice.name, directions_[slice.name] = at::empty({columns, rank}, options));
  }
  return flight;
}

void PowerSgdReducer::fill_directions(const std::string& param, const at::Tensor& q) const {
  const uint64_t key = stream_key(seed_, "power-sgd/" + param);
  with_elements(q, [&](auto* at) {
    for (int64_t i = 0; i < q.numel(); ++i) at[i] = normal4(key, static_cast<uint64_t>(i / 4))[i % 4];
  });
}

// A column of zeros, from a gradient that is zero or of low rank, would stay zero. It gets its initial random
// numbers again.
void PowerSgdReducer::keep_directions(const Matrix& matrix) {
  at::Tensor& kept = directions_.at(matrix.slice.name);
  fill_directions(matrix.slice.name, kept);
  for (int64_t k = 0; k < kept.size(1); ++k) {
    const at::Tensor column = matrix.q.select(1, k);
    if (column.count_nonzero().item<int64_t>() > 0) kept.select(1, k).copy_(column);
  }
}

Work PowerSgdReducer::send(const at::Tensor& message) {
  if (message.numel() == 0) return {};
  bytes_sent_ += all_reduce_bytes(message, group_.size());
  return group_.all_reduce(message, ReduceOp::Sum);
}

void PowerSgdReducer::start(int bucket, const at::Tensor& grads) {
  Flight& flight = flights_[bucket];
  flight.grads = grads;
  const auto in_bucket = [&](const GradSlice& slice, int64_t count) {
    return grads.narrow(0, slice.begin - buckets_[bucket].begin, count);
  };
  for (Matrix& matrix : flight.matrices) {
    matrix.residual.view({-1}).add_(in_bucket(matrix.slice, matrix.residual.numel()));
    at::mm_out(matrix.p, matrix.residual, directions_.at(matrix.slice.name));
    matrix.p_message.copy_(matrix.p);
  }
  for (Whole& whole : flight.wholes) whole.message.copy_(in_bucket(whole.slice, whole.message.numel()));
  flight.work = send(flight.first);
}

void PowerSgdReducer::advance(int bucket) {
  Flight& flight = flights_[bucket];
  flight.work.order_before(group_.queue());
  for (Matrix& matrix : flight.matrices) {
    matrix.p.copy_(matrix.p_message);
    make_orthonormal(matrix.p);
    at::mm_out(matrix.q, matrix.residual.t(), matrix.p);
    matrix.residual.addmm_(matrix.p, matrix.q.t(), 1, -1);
    matrix.q_message.copy_(matrix.q);
  }
  flight.work = send(flight.second);
}

void PowerSgdReducer::finish(int bucket) {
  Flight& flight = flights_[bucket];
  flight.work.order_before(group_.queue());
  const auto in_bucket = [&](const GradSlice& slice, int64_t count) {
    return flight.grads.narrow(0, slice.begin - buckets_[bucket].begin, count);
  };
  for (Whole& whole : flight.wholes) in_bucket(whole.slice, whole.message.numel()).copy_(whole.message);
  for (Matrix& matrix : flight.matrices) {
    matrix.q.copy_(matrix.q_message);
    const at::Tensor sum = in_bucket(matrix.slice, matrix.residual.numel());
    const Extents size{matrix.p.size(0), matrix.q.size(0)};
    with_elements(sum, [&](auto* out) {
      using T = std::remove_reference_t<decltype(*out)>;
      multiply_out<T>(size, matrix.p.size(1), matrix.p.const_data_ptr<T>(), matrix.q.const_data_ptr<T>(), out);
    });
    keep_directions(matrix);
  }
  flight.work = Work();
  flight.grads.reset();
}

std::vector<ReducerState> PowerSgdReducer::state() {
  auto all = residual_.state(buckets_, [&](const GradSlice& slice) { return directions_.contains(slice.name); });
  for (const auto& [param, q] : directions_) all.push_back({ReducerState::Kind::Directions, param, q});
  return all;
}

}  // namespace braid::sync
