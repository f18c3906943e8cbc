// The places of an optimizer's parameters in states that are one tensor for all of them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "braid/base/errors.h"

namespace torch::optim {
class Optimizer;
}

namespace braid::modules {

// A parameter, and where its elements are in each state.
struct StatePlace {
  at::Tensor parameter;
  size_t group = 0;
  int64_t begin = 0;
  at::ScalarType type = at::kFloat;  // that of the parameter when the place was made

  int64_t end() const { return begin + parameter.numel(); }
};

// Returns the places of all parameters, in order.
std::vector<StatePlace> places_of(torch::optim::Optimizer& optimizer);
// Returns the elements of a state, a multiple of kSliceAlign; 0 if there are no parameters.
int64_t num_elements(const std::vector<StatePlace>& places);
// Returns what keeps the states from being on disk: the optimizer's class, and each parameter that is not on
// the CPU, has gaps between its elements, has another type than the first, or is there twice.
std::vector<Problem> problems_of(const std::vector<StatePlace>& places, const torch::optim::Optimizer& optimizer);

}  // namespace braid::modules
