// Workers and servers of one test: threads, gradients that are a function of worker and clock, states as vectors.
#pragma once

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <cmath>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "braid/base/seeds.h"
#include "braid/sync/server/local_servers.h"
#include "braid/sync/server/server_client.h"

namespace braid::sync::server::tests {

#if defined(__SANITIZE_THREAD__)
inline constexpr bool kTsan = true;
#else
inline constexpr bool kTsan = false;
#endif

// Runs `body(worker)` on a thread each and rethrows what one of them throws, the lowest worker's first.
inline void on_workers(int num_workers, const std::function<void(int worker)>& body) {
  std::vector<std::exception_ptr> errors(static_cast<size_t>(num_workers));
  {
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < num_workers; ++worker) {
      threads.emplace_back([&, worker] {
        try {
          body(worker);
        } catch (...) {
          errors[static_cast<size_t>(worker)] = std::current_exception();
        }
      });
    }
  }
  for (const auto& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

// Values in [-1, 1) that are a function of `key` and the place.
inline at::Tensor values(at::IntArrayRef sizes, at::ScalarType type, uint64_t key) {
  at::Tensor tensor = at::empty(sizes, type);
  with_value_of(type, [&](auto zero) {
    using T = decltype(zero);
    T* out = tensor.mutable_data_ptr<T>();
    for (int64_t i = 0; i < tensor.numel(); ++i) {
      out[i] = static_cast<T>(2 * uniform(key, static_cast<uint64_t>(i)) - 1);
    }
  });
  return tensor;
}

inline uint64_t gradient_key(int worker, int64_t clock) { return static_cast<uint64_t>(worker) * 1000 + clock; }

// Returns a gradient of all elements and of about half of the rows, none twice.
inline KeyedTensors gradient(const KeyShape& shape, int worker, int64_t clock) {
  const uint64_t key = gradient_key(worker, clock);
  KeyedTensors all;
  if (shape.num_elements > 0) all.dense = values({shape.num_elements}, shape.type, key);
  for (const TableShape& table : shape.tables) {
    std::vector<int64_t> rows;
    for (int64_t row = 0; row < table.rows; ++row) {
      if (uniform(key + 77, static_cast<uint64_t>(row)) < 0.5) rows.push_back(row);
    }
    TableRows some{at::empty({static_cast<int64_t>(rows.size())}, at::kLong), {}};
    std::copy(rows.begin(), rows.end(), some.index.mutable_data_ptr<int64_t>());
    some.values = values({some.index.numel(), table.width}, shape.type, key + 99);
    all.rows.push_back(std::move(some));
  }
  return all;
}

// Initial values that are not zero.
inline ShardState initial_state(const KeyShape& shape, const optim::ElementRule& rule) {
  ShardState state = zero_state(shape, rule);
  state.elements[0] = values({shape.num_elements}, shape.type, 5);
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    state.tables[t].values[0] = values({shape.tables[t].rows, shape.tables[t].width}, shape.type, 6 + t);
  }
  return state;
}

inline std::vector<double> doubles(const at::Tensor& tensor) {
  std::vector<double> out(static_cast<size_t>(tensor.numel()));
  if (tensor.scalar_type() == at::kLong) {
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(tensor.const_data_ptr<int64_t>()[i]);
    return out;
  }
  with_value_of(tensor.scalar_type(), [&](auto zero) {
    using T = decltype(zero);
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<double>(tensor.const_data_ptr<T>()[i]);
  });
  return out;
}

inline std::vector<std::vector<double>> numbers(const ShardState& state) {
  std::vector<std::vector<double>> all = {{static_cast<double>(state.num_steps)}};
  for (const at::Tensor& tensor : state.elements) all.push_back(doubles(tensor));
  for (const auto& table : state.tables) {
    for (const at::Tensor& tensor : table.values) all.push_back(doubles(tensor));
    all.push_back(doubles(table.row_steps));
  }
  return all;
}

// Element by element, in double, from the formulas of the sources.
struct Reference {
  optim::ElementRule rule;
  double lr, decay;
  std::vector<double> weight, first, second;

  void step(const std::vector<double>& gradient, int64_t t) {
    for (size_t i = 0; i < weight.size(); ++i) {
      const bool coupled = rule.kind != OptimizerKind::AdamW;
      const double g = gradient[i] + (coupled ? decay * weight[i] : 0);
      if (rule.kind == OptimizerKind::Sgd) {
        weight[i] -= lr * g;
      } else if (rule.kind == OptimizerKind::Adagrad) {
        first[i] += g * g;
        weight[i] -= lr * g / (std::sqrt(first[i]) + rule.eps);
      } else {
        first[i] = rule.beta1 * first[i] + (1 - rule.beta1) * g;
        second[i] = rule.beta2 * second[i] + (1 - rule.beta2) * g * g;
        const double m = first[i] / (1 - std::pow(rule.beta1, t)), v = second[i] / (1 - std::pow(rule.beta2, t));
        weight[i] -= lr * (m / (std::sqrt(v) + rule.eps) + decay * weight[i]);
      }
    }
  }
};

}  // namespace braid::sync::server::tests
