// A parameter of the model as one rank holds it: its data and, if it is trained, master and gradients.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "braid/layout/param_spec.h"

namespace braid::param {

// A parameter's gradient from one of its uses. `slice` is a view of the flat gradient buffer.
struct UseGrad {
  int use = 0;
  at::Tensor slice;
};

struct Parameter {
  std::string name;
  mesh::Placement placement;
  model::Init init;
  model::WeightDecay decay = model::WeightDecay::Yes;
  model::LinearMap linear = model::LinearMap::No;
  model::Trained trained = model::Trained::Yes;
  int index = 0;                // index in ParamStore::params() or, if it is frozen, in ParamStore::frozen()
  int uses = 1;                 // number of uses in the whole model
  std::vector<int> local_uses;  // the uses that blocks on this rank make, ascending
  int64_t offset = 0;           // offset of `data` (and of `main_grad`) in the flat buffers, in elements
  at::Tensor data;              // local shape; the weights that layers use. Requires a gradient if it is trained
  // Local shape; the weights that the optimizer updates. Undefined if states are sharded or the parameter is frozen.
  at::Tensor master;
  // Local shape; the gradient of this rank, a view of the slice of the first local use. Undefined if gradients are
  // sharded or the parameter is frozen.
  at::Tensor main_grad;
  // Fast: all are main_grad; reproducible: one slice each, added up at the end of the step. Empty if it is frozen.
  std::vector<UseGrad> use_grads;

  int64_t num_elements() const { return braid::mesh::num_elements(placement.local_shape); }
  bool is_trained() const { return trained == model::Trained::Yes; }
};

}  // namespace braid::param
