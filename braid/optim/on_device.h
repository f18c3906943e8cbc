// The optimizer's passes over flat buffers on a device, by libbraid_cuda.so. It decides nothing: adamw.h and
// grad_norm.h are for callers.
#pragma once

#include <vector>

#include "braid/optim/cuda_table.h"
#include "braid/param/param_store.h"

namespace braid::on_device {

// Per block of the flat buffers, uint8 on their device: 1 where the parameter decays.
at::Tensor decay_map(const ParamStore& store);

// What an update reads and writes beside the masters and the data of `store`.
struct AdamWState {
  at::Tensor decays, first, second;
};
// Returns before it has run.
template <class T>
void adamw(const ParamStore& store, const AdamWState& state, const AdamWFactors<T>& factors);

// The sum of squares of each parameter's main_grad, by Parameter::index. Waits for the device.
std::vector<double> squares(const ParamStore& store);

}  // namespace braid::on_device
