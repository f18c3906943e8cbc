// Optimizer states stored in bfloat16 with stochastic rounding. A value between two neighbours of the format becomes
// the upper one with a probability equal to its distance from the lower one, in units of their distance. So the
// rounding error has mean zero, and changes of a moment that are smaller than half a unit in its last place count on
// average. Rounding to nearest would lose them: AdamW's second moment changes by at most the fraction 1 - beta2 in a
// step, and half a unit of bfloat16 is up to 1/256 of a value.
//
// Source: Gupta et al., "Deep Learning with Limited Numerical Precision" (ICML 2015), section 3.
#pragma once

#include <cstdint>
#include <vector>

#include "braid/base/bfloat16.h"
#include "braid/mesh/placement.h"
#include "braid/param/param_store.h"

namespace braid::optim {

// The random bits of the roundings: a pure function of (seed, parameter's name, index of the element in the global
// tensor, update, state). So they do not depend on threads or on how tensors are split or sharded. Copies of a tensor
// are rounded alike, and a resumed run draws what an uninterrupted one does.
class StochasticRounding {
 public:
  explicit StochasticRounding(const param::ParamStore& store);

  // Writes a word for each of the ParamStore::kAlign elements of a block of the flat buffers, for update number `step`.
  // State i of an element takes bits 16 i to 16 i + 15 of its word. Words of padding are 0: its states are zeros, which
  // are stored as they are.
  void draw(int64_t block, int64_t step, uint32_t* words) const;

 private:
  struct Slice {
    int64_t begin;              // offset in the flat buffers
    uint64_t key;               // of the parameter's stream
    mesh::Placement placement;  // with dims that no rank splits merged into the dim before them
  };
  std::vector<Slice> slices_;  // ascending
};

// Widen and round a block of ParamStore::kAlign values. `state` chooses the bits of `words`: 0 or 1.
void widen_block(const Bf16* from, float* to);
void round_block(const float* from, const uint32_t* words, int state, Bf16* to);

}  // namespace braid::optim
