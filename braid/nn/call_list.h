// The calls of a piece in their order, with the sums over tensor ranks between them (layout/tensor_sums.h), and under
// sequence parallelism the gathers of their tokens.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "braid/model/graph.h"
#include "braid/nn/graph_block.h"

namespace braid::nn {

class CallList {
 public:
  // The tensor ranks of `rank` outlive the blocks.
  CallList(const model::BlockGraph& block, const RankContext& rank);

  // Returns true if the value is summed over tensor ranks after it is made.
  bool sums(int value) const { return splits_ && summed_[value]; }

  // Returns the value that the op reads: its input, or a copy of it whose gradient is summed over tensor ranks and
  // which has all tokens. All ops that need a copy of a value share it.
  int input_of(const model::Op& op);

  // Names the op of the calls that are added from now on.
  void begin_op(const comm::OpName& name) { op_ = name; }
  // Adds a call that uses these values, and the sum of `out`, which it makes.
  void add(std::vector<int> uses, int out, Call::Run run);

  std::unique_ptr<Block> block(int input, int output) &&;

 private:
  const model::BlockGraph& block_;
  Communicator& tensor_;
  const bool splits_, splits_tokens_;
  const std::vector<bool> summed_;
  int num_values_;
  comm::OpName op_;
  std::map<std::pair<int, bool>, int> copies_;  // by value, and whether the copy's gradient is summed
  std::vector<Call> calls_;
};

}  // namespace braid::nn
