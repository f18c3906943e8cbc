// The sums over tensor ranks that follow from the letters that these split (model/letters.h). A tensor that lacks a split
// letter of its op is on each rank a part of a sum: outputs in forward, gradients of inputs and parameters in backward.
#pragma once

#include <set>
#include <vector>

#include "braid/model/graph.h"

namespace braid::layout {

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

}  // namespace braid::layout
