// The optimizer's passes over flat buffers on a device, in libbraid_cuda.so. Callers use optimizer.h and grad_norm.h,
// which make the decisions.
#pragma once

#include <vector>

#include "braid/optim/cuda_table.h"
#include "braid/param/param_store.h"

namespace braid::on_device {

// Returns a uint8 tensor of `values` on the store's device.
at::Tensor bytes(const std::vector<uint8_t>& values, const param::ParamStore& store);

// The buffers that an update reads and writes.
template <class T>
struct Elements {
  optim::ElementRange<T> range;
  void* data;  // the masters rounded to `data_type`; the masters themselves if they have that type
  at::ScalarType data_type;
};
// Enqueues an update and returns before it has run. `group_of_block`: uint8 on the device, the group of every block of
// `elements`.
template <class Factors, class T>
void update(const at::Tensor& group_of_block, const Elements<T>& elements, const std::vector<Factors>& of_groups);

// Returns the sum of squares of each parameter's main_grad, by Parameter::index. Waits for the device.
std::vector<double> squares(const param::ParamStore& store);

}  // namespace braid::on_device
