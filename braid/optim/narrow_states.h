// Optimizer states of fewer bits than the float32 in which they are updated, block by block of the flat buffers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "braid/optim/element_update.h"
#include "braid/optim/stochastic_rounding.h"
#include "braid/param/param_store.h"
#include "braid/spec/optimizer_spec.h"

namespace braid::optim {

// The states of consecutive elements of the flat buffers.
struct NarrowStates {
  StateType type = StateType::Float32;           // Float32: there are none
  std::array<std::byte*, 2> at = {};             // of the first element; a state that a rule does not have is null
  std::array<float*, 2> scales = {};             // of the first element's block; null unless type is Int8
  std::array<StateSign, 2> signs = {};           // unless type is BFloat16
  const StochasticRounding* rounding = nullptr;  // null unless type is BFloat16
  int64_t first_block = 0;                       // of ParamStore::kAlign elements of the flat buffers
  int64_t step = 0;                              // number of the update

  // Returns the states from `blocks` blocks further on.
  NarrowStates from(int64_t blocks) const;
};

using WideBlock = std::array<float, param::ParamStore::kAlign>;
// Computes the float32 values of state `i` of the first block.
void read_state(const NarrowStates& states, size_t i, WideBlock& to);
// Stores all states of the first block.
void store_states(const std::array<WideBlock, 2>& from, const NarrowStates& states);

}  // namespace braid::optim
