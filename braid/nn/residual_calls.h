// The calls of ops on the residual stream: dropout, norms, and the residuals that join a branch to it.
#pragma once

#include "braid/model/graph.h"
#include "braid/model/model_spec.h"
#include "braid/nn/graph_block.h"
#include "braid/nn/op_params.h"
#include "braid/nn/residual_norm.h"

namespace braid::nn {

// A branch that a residual adds to the stream: a value, perhaps with a bias and dropout.
struct BranchOps {
  int value = 0;
  const param::Parameter* bias = nullptr;
  Dropout dropout = Dropout({});
};

class ResidualCalls {
 public:
  // `number` is that of the block in the model's list. `spec`, `block` and `params` outlive this object. The calls that
  // it returns read none of them, only parameters and ranks.
  ResidualCalls(const ModelSpec& spec, const model::BlockGraph& block, size_t number, const OpParams& params,
                const RankContext& rank);

  // Returns the dropout of an op, whose masks no other op draws.
  Dropout dropout_of(const model::Op& op) const;

  Call::Run dropout(const model::Op& op) const;
  // The call also takes the place of the norm's input as the stream's next value.
  Call::Run norm(const model::Op& op) const;
  Call::Run join(const BranchOps& branch, const model::Op& residual) const;
  // The same, and the norm that reads the sum.
  Call::Run join_and_norm(const BranchOps& branch, const model::Op& residual, const model::Op& norm) const;

 private:
  NormCall norm_call(const model::Op& op) const;

  const ModelSpec& spec_;
  const model::BlockGraph& block_;
  const size_t number_;
  const OpParams& params_;
  const RankContext rank_;
};

}  // namespace braid::nn
