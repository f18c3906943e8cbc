// The state of one server: its range of the flat parameters, its rows of the tables, and the optimizer state of both.
//
// Each row has its own optimizer state. A row without a gradient does not change, and AdamW counts the steps of each
// row.
#pragma once

#include <span>
#include <vector>

#include "braid/optim/element_rule.h"
#include "braid/sync/server/keyed_tensors.h"

namespace braid::sync::server {

// The complete state of a shard: flat tensors in a fixed order.
struct ShardState {
  int64_t num_steps = 0;             // number of updates of the flat parameters
  std::vector<at::Tensor> elements;  // the parameters, then one tensor for each state of the rule
  struct Table {
    std::vector<at::Tensor> values;  // [rows, width]: the same order as `elements`
    at::Tensor row_steps;            // int64 [rows]: number of updates of each row
  };
  std::vector<Table> tables;
};

// Returns a state of zeros, for a part of a model or the whole model.
ShardState zero_state(const KeyShape& shape, const optim::ElementRule& rule);
// Returns true if `state` has the tensors that `shape` and `rule` require.
bool fits(const ShardState& state, const KeyShape& shape, const optim::ElementRule& rule);

class ServerShard {
 public:
  // `not_decayed` are ascending ranges of the shard's elements that weight decay excludes. All values start at zero.
  ServerShard(const KeyShape& shape, const optim::ElementRule& rule, std::vector<KeyRange> not_decayed = {});

  const KeyShape& shape() const { return shape_; }
  const optim::ElementRule& rule() const { return rule_; }

  // Makes one update with the mean of the gradients, which are summed in the given order. A row that only some
  // gradients contain counts as zero in the others.
  void apply(std::span<const KeyedTensors> gradients, double lr);

  // Returns the current parameters, which are never written again. Calls return the same tensor until the next update.
  const at::Tensor& snapshot();
  // Returns copies of the rows, [n, width].
  at::Tensor rows(int table, const at::Tensor& index) const;

  const ShardState& state() const { return state_; }
  // Returns a copy of the state, which is never written again. Its parameters are those of snapshot().
  ShardState state_copy();
  // Copies `state`.
  void set_state(const ShardState& state);
  void set_elements(const at::Tensor& parameters);

 private:
  template <class T>
  void apply_dense(std::span<const KeyedTensors> gradients, double lr);
  template <class T>
  void apply_rows(size_t table, const TableRows& gradient, optim::ElementStep step);
  TableRows summed_rows(size_t table, std::span<const KeyedTensors> gradients) const;

  const KeyShape shape_;
  const optim::ElementRule rule_;
  std::vector<std::pair<KeyRange, double>> stretches_;  // ranges of equal weight decay; they cover the elements
  ShardState state_;
  at::Tensor snapshot_;
};

}  // namespace braid::sync::server
