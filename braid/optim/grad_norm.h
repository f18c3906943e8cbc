// The global gradient norm, derived from each parameter's Placement.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/mesh/device_mesh.h"
#include "braid/param/param_store.h"

namespace braid {

// The parameters of the whole model in one fixed order: entry names of the norm vector. Equal on every rank.
using ParamOrder = std::vector<std::string>;

// Squares are summed in float64 over fixed blocks of ParamStore::kAlign elements in parameter order, each element once
// over `model_group` (pipe x tensor ranks of one replica): copies along the tensor axis and the second place of a tied
// parameter do not count. Bitwise the same for every pipe size. `counts` says whether this rank speaks for a parameter.
// Collective over `model_group`.
double global_grad_norm(const ParamStore& store, const ParamOrder& order,
                        const std::function<bool(const Parameter&)>& counts, Communicator& model_group);

// min(1, clip_norm / (norm + 1e-6)), 1 when clip_norm is 0 (as torch.nn.utils.clip_grad_norm_).
double clip_scale(double norm, double clip_norm);

}  // namespace braid
