// The optimizer's passes over flat buffers on a device, by libbraid_cuda.so. It decides nothing: optimizer.h and
// grad_norm.h are for callers.
#pragma once

#include <vector>

#include "braid/optim/cuda_table.h"
#include "braid/param/param_store.h"

namespace braid::on_device {

// A uint8 tensor of `values`, where the store is.
at::Tensor bytes(const std::vector<uint8_t>& values, const param::ParamStore& store);

// The buffers that an update reads and writes.
template <class T>
struct Elements {
  optim::ElementRange<T> range;
  void* data;  // the masters rounded to `data_type`; the masters themselves where it is theirs
  at::ScalarType data_type;
};
// `group_of_block`: uint8 on the device, for every block of `elements`. Returns before it has run.
template <class Factors, class T>
void update(const at::Tensor& group_of_block, const Elements<T>& elements, const std::vector<Factors>& of_groups);

// The sum of squares of each parameter's main_grad, by Parameter::index. Waits for the device.
std::vector<double> squares(const param::ParamStore& store);

}  // namespace braid::on_device
