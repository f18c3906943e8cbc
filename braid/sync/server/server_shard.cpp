// Sums and updates block by block, while a block is in the cache. Copies use memcpy, because LibTorch's may use
// threads.
#include "braid/sync/server/server_shard.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "braid/base/errors.h"
#include "braid/sync/server/row_sum.h"

namespace braid::sync::server {
namespace {

constexpr int64_t kBlock = 4096;  // elements summed at a time

at::Tensor zeroed(at::IntArrayRef sizes, at::ScalarType type) {
  at::Tensor tensor = at::empty(sizes, type);
  if (tensor.nbytes() > 0) std::memset(tensor.mutable_data_ptr(), 0, tensor.nbytes());
  return tensor;
}

at::Tensor copied(const at::Tensor& tensor) {
  at::Tensor copy = at::empty(tensor.sizes(), tensor.scalar_type());
  if (tensor.nbytes() > 0) std::memcpy(copy.mutable_data_ptr(), tensor.const_data_ptr(), tensor.nbytes());
  return copy;
}

// Returns element 0 of state number `index`; null if the rule has fewer states.
template <class T>
T* state_data(const std::vector<at::Tensor>& tensors, size_t index) {
  return index < tensors.size() ? tensors[index].mutable_data_ptr<T>() : nullptr;
}

// Applies one step of `rule` to a range.
template <class T>
void apply_rule(const optim::ElementRule& rule, const optim::ElementStep& step, const optim::ElementRange<T>& range) {
  optim::with_factors_type<T>(rule, [&](auto type) {
    using Factors = typename decltype(type)::type;
    optim::update_elements(Factors::of(rule, step), range);
  });
}

template <class T>
T* offset(T* data, int64_t elements) {
  return data ? data + elements : nullptr;
}

bool all_fit(const std::vector<at::Tensor>& tensors, const optim::ElementRule& rule, at::ScalarType type,
             int64_t numel) {
  return static_cast<int>(tensors.size()) == 1 + rule.num_states() &&
         std::all_of(tensors.begin(), tensors.end(), [&](const at::Tensor& tensor) {
           return tensor.scalar_type() == type && tensor.numel() == numel && tensor.is_contiguous();
         });
}

}  // namespace

ShardState zero_state(const KeyShape& shape, const optim::ElementRule& rule) {
  ShardState state;
  for (int i = 0; i <= rule.num_states(); ++i) state.elements.push_back(zeroed({shape.num_elements}, shape.type));
  for (const TableShape& table : shape.tables) {
    auto& zeros = state.tables.emplace_back();
    for (int i = 0; i <= rule.num_states(); ++i) {
      zeros.values.push_back(zeroed({table.rows, table.width}, shape.type));
    }
    zeros.row_steps = zeroed({table.rows}, at::kLong);
  }
  return state;
}

bool fits(const ShardState& state, const KeyShape& shape, const optim::ElementRule& rule) {
  if (!all_fit(state.elements, rule, shape.type, shape.num_elements)) return false;
  if (state.tables.size() != shape.tables.size()) return false;
  for (size_t t = 0; t < shape.tables.size(); ++t) {
    const TableShape& table = shape.tables[t];
    if (!all_fit(state.tables[t].values, rule, shape.type, table.rows * table.width)) return false;
    const at::Tensor& steps = state.tables[t].row_steps;
    if (!steps.defined() || steps.scalar_type() != at::kLong || steps.numel() != table.rows) return false;
  }
  return true;
}

ServerShard::ServerShard(const KeyShape& shape, const optim::ElementRule& rule, std::vector<KeyRange> not_decayed)
    : shape_(shape), rule_(rule), state_(zero_state(shape, rule)) {
  int64_t at = 0;
  for (const KeyRange& range : not_decayed) {
    check(at <= range.begin && range.begin <= range.end && range.end <= shape.num_elements, "stretches ascend");
    if (at < range.begin) stretches_.push_back({{at, range.begin}, rule.weight_decay});
    if (range.size() > 0) stretches_.push_back({range, 0});
    at = range.end;
  }
  if (at < shape.num_elements) stretches_.push_back({{at, shape.num_elements}, rule.weight_decay});
}

void ServerShard::apply(std::span<const KeyedTensors> gradients, double lr) {
  check(!gradients.empty(), "an update has gradients");
  snapshot_.reset();
  with_value_of(shape_.type, [&](auto zero) {
    using T = decltype(zero);
    apply_dense<T>(gradients, lr);
    for (size_t t = 0; t < shape_.tables.size(); ++t) {
      const optim::ElementStep step{lr, 1.0 / static_cast<double>(gradients.size()), rule_.weight_decay};
      apply_rows<T>(t, summed_rows(t, gradients), step);
    }
  });
}

template <class T>
void ServerShard::apply_dense(std::span<const KeyedTensors> gradients, double lr) {
  std::array<T, kBlock> sum;
  ++state_.num_steps;
  for (const auto& [stretch, decay] : stretches_) {
    const optim::ElementStep step{lr, 1.0 / static_cast<double>(gradients.size()), decay, state_.num_steps};
    for (int64_t begin = stretch.begin; begin < stretch.end; begin += kBlock) {
      const int64_t count = std::min(kBlock, stretch.end - begin);
      const T* total = gradients[0].dense.const_data_ptr<T>() + begin;
      if (gradients.size() > 1) {
        std::copy_n(total, count, sum.data());
        total = sum.data();
      }
      for (const KeyedTensors& next : gradients.subspan(1)) {
        const T* more = next.dense.const_data_ptr<T>() + begin;
        for (int64_t i = 0; i < count; ++i) sum[static_cast<size_t>(i)] += more[i];
      }
      apply_rule<T>(rule_, step,
                    {state_data<T>(state_.elements, 0) + begin, total, offset(state_data<T>(state_.elements, 1), begin),
                     offset(state_data<T>(state_.elements, 2), begin), count});
    }
  }
}

TableRows ServerShard::summed_rows(size_t table, std::span<const KeyedTensors> gradients) const {
  if (gradients.size() == 1) return gradients[0].rows[table];
  RowSum sum(shape_.type, shape_.tables[table].width);
  for (const KeyedTensors& gradient : gradients) sum.add(gradient.rows[table].index, gradient.rows[table].values);
  return sum.take();
}

template <class T>
void ServerShard::apply_rows(size_t table, const TableRows& gradient, optim::ElementStep step) {
  if (!gradient.index.defined()) return;
  auto& kept = state_.tables[table];
  const int64_t width = shape_.tables[table].width;
  const int64_t* index = gradient.index.const_data_ptr<int64_t>();
  const T* grad = gradient.values.const_data_ptr<T>();
  int64_t* row_steps = kept.row_steps.mutable_data_ptr<int64_t>();
  for (int64_t i = 0; i < gradient.index.numel(); ++i) {
    const int64_t begin = index[i] * width;
    step.step = ++row_steps[index[i]];
    apply_rule<T>(rule_, step,
                  {state_data<T>(kept.values, 0) + begin, grad + i * width,
                   offset(state_data<T>(kept.values, 1), begin), offset(state_data<T>(kept.values, 2), begin), width});
  }
}

const at::Tensor& ServerShard::snapshot() {
  if (!snapshot_.defined()) snapshot_ = copied(state_.elements[0]);
  return snapshot_;
}

ShardState ServerShard::state_copy() {
  ShardState copy = state_;
  copy.elements[0] = snapshot();
  for (size_t i = 1; i < copy.elements.size(); ++i) copy.elements[i] = copied(state_.elements[i]);
  for (auto& table : copy.tables) {
    for (at::Tensor& tensor : table.values) tensor = copied(tensor);
    table.row_steps = copied(table.row_steps);
  }
  return copy;
}

at::Tensor ServerShard::rows(int table, const at::Tensor& index) const {
  const at::Tensor& values = state_.tables[static_cast<size_t>(table)].values[0];
  const size_t bytes = values.nbytes() / static_cast<size_t>(std::max<int64_t>(1, values.size(0)));
  at::Tensor out = at::empty({index.numel(), values.size(1)}, values.scalar_type());
  const int64_t* row = index.const_data_ptr<int64_t>();
  auto* to = static_cast<std::byte*>(out.mutable_data_ptr());
  const auto* from = static_cast<const std::byte*>(values.const_data_ptr());
  for (int64_t i = 0; i < index.numel(); ++i) {
    std::memcpy(to + static_cast<size_t>(i) * bytes, from + static_cast<size_t>(row[i]) * bytes, bytes);
  }
  return out;
}

// Copies into the existing memory.
void ServerShard::set_state(const ShardState& state) {
  check(fits(state, shape_, rule_), "a state of the same shape and rule");
  snapshot_.reset();
  state_.num_steps = state.num_steps;
  for (size_t i = 0; i < state.elements.size(); ++i) overwrite(state_.elements[i], state.elements[i]);
  for (size_t t = 0; t < state.tables.size(); ++t) {
    const auto& from = state.tables[t];
    for (size_t i = 0; i < from.values.size(); ++i) overwrite(state_.tables[t].values[i], from.values[i]);
    overwrite(state_.tables[t].row_steps, from.row_steps);
  }
}

void ServerShard::set_elements(const at::Tensor& parameters) {
  check(parameters.numel() == shape_.num_elements && parameters.scalar_type() == shape_.type, "all of its elements");
  snapshot_.reset();
  overwrite(state_.elements[0], parameters);
}

}  // namespace braid::sync::server
