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

namespace braid::layout {

// The tokens of values without a split letter. Split: sequence parallelism.
enum class Sequence { Whole, Split };
inline Sequence sequence_of(const MeshSpec& mesh) { return mesh.sequence_parallel ? Sequence::Split : Sequence::Whole; }

// Returns the letters of `dims` that tensor ranks split.
std::set<char> split_letters(const model::Dims& dims);
// Returns those of all tensors of the op.
std::set<char> split_letters(const model::BlockGraph& block, const model::Op& op);

// Returns true if the gradient of the op's input is summed.
bool sums_input_gradient(const model::BlockGraph& block, const model::Op& op);
// Returns true if the gradient of the op's parameter is summed.
bool sums_gradient_of(const model::BlockGraph& block, const model::Op& op, const model::Param& param);

// Returns, for each value of the block, true if it is summed after it is made. Residuals add partial sums as they are,
// and only the result is summed: attention and feed-forward in parallel share one all-reduce.
std::vector<bool> summed_values(const model::BlockGraph& block);

// Returns, for each value, true if its op makes parts of a sum out of whole tensors. Summed one by one, all of these
// are whole again, and no residual adds partial sums.
std::vector<bool> parts_made(const model::BlockGraph& block);

// Returns, for each value, true if each tensor rank keeps a part of a sum: a later residual sums it with others.
std::vector<bool> partial_values(const model::BlockGraph& block);

// Returns true if tensor ranks split the tokens of a value of these dims under sequence parallelism.
bool splits_tokens(const model::Dims& dims);
// Returns true if the op runs on a rank's own tokens there, so that the gradients of its parameters are parts of a sum.
bool splits_tokens(const model::BlockGraph& block, const model::Op& op);
// Returns true if the op reads all tokens of an input whose tokens are split.
bool gathers_tokens(const model::BlockGraph& block, const model::Op& op);

}  // namespace braid::layout
