// The parameters of a graph that are trained, and the gradients that backward needs for them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "braid/model/graph.h"

namespace braid::model {

// Returns the graph with the parameters marked that are frozen, by their names in the whole model. Blocks that were of
// one kind and now differ, in frozen parameters or in whether their input needs a gradient, are of several.
ModelGraph with_frozen(const ModelGraph& graph, const std::function<bool(const std::string& name)>& is_frozen);

bool is_trained(const Param& param);
// Returns true if an op has a trained parameter.
bool has_trained(const Op& op);
bool has_trained(std::span<const Op> ops);

// Returns for each value of the block whether backward computes its gradient: it depends on a trained parameter of the
// block, or on an input that needs one.
std::vector<bool> values_with_gradient(const BlockGraph& block);

// Returns true if an op that has a backward keeps its first input for it: a product for the gradient of its weight,
// others for any gradient. Attention keeps its output itself; that counts as kept by the product after it.
bool keeps_input(const BlockGraph& block, const Op& op);

}  // namespace braid::model
