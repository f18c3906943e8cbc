// The calls of a piece in their order, with the sums over tensor ranks between them (layout/tensor_sums.h), and under
// sequence parallelism the gathers of their tokens.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "braid/model/graph.h"
#include "braid/nn/graph_block.h"

namespace braid::nn {

class CallList {
 public:
  // The tensor ranks of `rank` outlive the blocks.
  // `number` is that of the block in the model's list.
  // Where sums have parts (layout::TensorParts), each value is summed by itself, and the sums of values and gradients
  // of `type` are made in float32 if it is narrower.
  CallList(const model::BlockGraph& block, int number, const RankContext& rank, at::ScalarType type);

  // Begins with this value. Called before all others.
  void begin(int input);

  // Returns true if the value is summed over tensor ranks after it is made. Where sums have parts, the number of ranks
  // makes no difference.
  bool sums(int value) const { return (splits_ || has_parts_) && summed_[value]; }

  // Returns the value that the op reads: its input, or a copy of it whose gradient is summed over tensor ranks and
  // which has all tokens. All ops that need a copy of a value share it, unless sums have parts.
  int input_of(const model::Op& op);

  // Returns true if the gradient of the op's input is summed over tensor ranks.
  bool sums_input_gradient(const model::Op& op) const;

  // Names the op of the calls that are added from now on.
  void begin_op(const comm::OpName& name) { op_ = name; }
  // Adds a call that uses these values, and the sum of `out`, which it makes.
  void add(std::vector<int> uses, int out, Call::Run run);

  // Adds a call for the observer, if there is one, with value `x` or what `make` makes of it without gradients.
  void observe(const MadeValue& place, int x, std::function<at::Tensor(const at::Tensor&, const Microbatch&)> make);

  std::unique_ptr<Block> block(int output) &&;

 private:
  void observe_new(const std::vector<int>& uses);

  const model::BlockGraph& block_;
  const int number_;
  ValueObserver* const observer_;
  Communicator& tensor_;
  param::WeightGradQueue& weight_grads_;
  const bool splits_, splits_tokens_, has_parts_;
  const at::ScalarType type_;
  const std::vector<bool> summed_, partial_;
  int num_values_, input_ = 0;
  std::set<int> made_;  // the values that exist after the calls so far
  comm::OpName op_;
  std::map<std::pair<int, bool>, int> copies_;  // by value, and whether the copy's gradient is summed
  std::vector<Call> calls_;
};

}  // namespace braid::nn
