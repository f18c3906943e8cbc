// The state of one server: its range of the flat parameters, its rows of the tables, and the optimizer's state of both.
//
// Rows have a state of their own: a row that no gradient touches stays as it is, and AdamW counts a row's own steps.
#pragma once

#include <span>
#include <vector>

#include "braid/optim/element_rule.h"
#include "braid/sync/server/keyed_tensors.h"

namespace braid::sync::server {

// All a shard is: flat tensors in a fixed order.
struct ShardState {
  int64_t num_steps = 0;             // updates of the flat parameters
  std::vector<at::Tensor> elements;  // the parameters, then one tensor for each state of the rule
  struct Table {
    std::vector<at::Tensor> values;  // [rows, width]: as for elements
    at::Tensor row_steps;            // int64 [rows]: updates of each row
  };
  std::vector<Table> tables;
};

// Zeros. Of any part of a model, or all of it.
ShardState zero_state(const KeyShape& shape, const optim::ElementRule& rule);
// Independent of `state`, in memory of its own.
ShardState copy_of(const ShardState& state);
// Returns true if it has the tensors that `shape` and `rule` ask for.
bool fits(const ShardState& state, const KeyShape& shape, const optim::ElementRule& rule);

class ServerShard {
 public:
  // `not_decayed`: stretches of the shard's elements, ascending, that weight decay leaves out. All zeros at first.
  ServerShard(const KeyShape& shape, const optim::ElementRule& rule, std::vector<KeyRange> not_decayed = {});

  const KeyShape& shape() const { return shape_; }
  const optim::ElementRule& rule() const { return rule_; }

  // One update by the mean of the gradients, which are summed in the order given. A row that only some have counts
  // as zero in the others.
  void apply(std::span<const KeyedTensors> gradients, double lr);

  // The parameters as they are now; never written again. Shared until the next update.
  const at::Tensor& snapshot();
  // Copies; [n, width].
  at::Tensor rows(int table, const at::Tensor& index) const;

  const ShardState& state() const { return state_; }
  // Copies.
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
  std::vector<std::pair<KeyRange, double>> stretches_;  // of equal weight decay; they cover the elements
  ShardState state_;
  at::Tensor snapshot_;
};

}  // namespace braid::sync::server
