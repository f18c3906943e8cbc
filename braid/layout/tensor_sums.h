// The sums over tensor ranks that follow from the letters that these split (model/dims.h). A tensor that lacks a split
// letter of its op is on each rank a part of a sum: outputs in forward, gradients of inputs and parameters in backward.
//
// Under sequence parallelism tensor ranks also split the tokens of values without such a letter: those between one
// row-parallel product and the next column-parallel one. Each rank has an equal part of every sequence. An all-gather
// and a reduce-scatter along the tokens take the place of the all-reduces. Source: Korthikanti et al. 2022,
// section 4.2.
#pragma once

#include <set>
#include <vector>

#include "braid/model/graph.h"
#include "braid/spec/mesh_spec.h"
#include "braid/spec/train_spec.h"

namespace braid::layout {

// The tokens of values without a split letter. Split: sequence parallelism.
enum class Sequence { Whole, Split };
inline Sequence sequence_of(const MeshSpec& mesh) { return mesh.sequence_parallel ? Sequence::Split : Sequence::Whole; }

// How tensor ranks add the parts of values and gradients that they make.
enum class TensorSums {
  Joined,   // branches in parallel share a sum of their values, and all readers of a value one of its gradient
  ByValue,  // each value by itself, and its gradient for each reader; products in float32 if their type is narrower
};
// Returns ByValue where the bits of sums do not depend on the number of tensor ranks: in reproducible mode, on CPUs.
inline TensorSums sums_of(const TrainSpec& train) {
  const bool fixes_bits = train.reduction == Reduction::Reproducible && train.device == DeviceKind::Cpu;
  return fixes_bits ? TensorSums::ByValue : TensorSums::Joined;
}

// The parts in which layers form the sums that tensor ranks would divide, so that their bits do not depend on the
// number of ranks. `of_rank`: of a dim that tensor ranks split; 0: layers sum in any order. `of_tokens`: of the tokens
// of a hidden state on this rank.
struct TensorParts {
  int of_rank = 0, of_tokens = 0;

  explicit operator bool() const { return of_rank > 0; }
};

// Returns the letters of `dims` that tensor ranks split.
std::set<char> split_letters(const model::Dims& dims);
// Returns those of all tensors of the op.
std::set<char> split_letters(const model::BlockGraph& block, const model::Op& op);

// Returns true if the gradient of the op's input is summed.
bool sums_input_gradient(const model::BlockGraph& block, const model::Op& op);
// Returns true if the gradient of the op's parameter is summed.
bool sums_gradient_of(const model::BlockGraph& block, const model::Op& op, const model::Param& param);

// Returns, for each value of the block, true if it is summed after it is made. Joined: residuals add partial sums as
// they are, and only the result is summed. ByValue: each op sums the parts that it makes, so no residual adds any.
std::vector<bool> summed_values(const model::BlockGraph& block, TensorSums sums = TensorSums::Joined);

// Returns, for each value, true if each tensor rank keeps a part of a sum: a later residual sums it with others.
std::vector<bool> partial_values(const model::BlockGraph& block, TensorSums sums = TensorSums::Joined);

// Returns true if the value, which the op makes and ranks sum, is summed in float32 if its type is narrower.
bool sums_in_float(const model::Op& op, TensorSums sums);

// Returns true if tensor ranks split the tokens of a value of these dims under sequence parallelism.
bool splits_tokens(const model::Dims& dims);
// Returns true if the op runs on a rank's own tokens there, so that the gradients of its parameters are parts of a sum.
bool splits_tokens(const model::BlockGraph& block, const model::Op& op);
// Returns true if the op reads all tokens of an input whose tokens are split.
bool gathers_tokens(const model::BlockGraph& block, const model::Op& op);

}  // namespace braid::layout
