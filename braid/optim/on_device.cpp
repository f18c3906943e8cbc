// The optimizer's passes on a device. Tensors are passed to kernels through the table of libbraid_cuda.so.
#include "braid/optim/on_device.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <type_traits>

#include "braid/base/errors.h"
#include "braid/device/cuda_services.h"

namespace braid::on_device {
namespace {

static_assert(optim::kFlatBlock == param::ParamStore::kAlign);

const optim::OptimCudaTable& table(const at::Tensor& x) {
  const auto* found = x.is_cuda() ? device::cuda_table<optim::OptimCudaTable>() : nullptr;
  check(found != nullptr, "parameters are on the CPU or on a CUDA device that was loaded");
  return *found;
}

// Returns the first block of each parameter, then the number of blocks. Each slice begins at its parameter's offset and
// ends where the next one begins.
at::Tensor first_blocks(const param::ParamStore& store) {
  const auto num_params = static_cast<int64_t>(store.params().size());
  const at::Tensor blocks = at::empty({num_params + 1}, at::kLong);
  auto* to = blocks.mutable_data_ptr<int64_t>();
  for (const param::Parameter& param : store.params()) *to++ = param.offset / optim::kFlatBlock;
  *to = store.num_flat() / optim::kFlatBlock;
  return blocks.to(store.flat_master().device());
}

optim::RoundedTo rounded_to(at::ScalarType data) {
  if (data == at::kBFloat16) return optim::RoundedTo::Bfloat16;
  return data == at::kHalf ? optim::RoundedTo::Float16 : optim::RoundedTo::Nothing;
}

}  // namespace

at::Tensor bytes(const std::vector<uint8_t>& values, const param::ParamStore& store) {
  const at::Tensor host = at::empty({static_cast<int64_t>(values.size())}, at::kByte);
  std::copy(values.begin(), values.end(), host.mutable_data_ptr<uint8_t>());
  return host.to(store.flat_master().device());
}

template <class Factors, class T>
void update(const at::Tensor& group_of_block, const Elements<T>& elements, const std::vector<Factors>& of_groups) {
  const optim::OptimCudaTable& functions = table(group_of_block);
  check(of_groups.size() <= optim::kMostGroups, "a kernel has room for the rates of all groups");
  optim::FactorsOfGroups<Factors> factors{};
  std::copy(of_groups.begin(), of_groups.end(), factors.at);
  const optim::FlatUpdate<T> call{elements.range, group_of_block.const_data_ptr<uint8_t>(), factors, elements.data,
                                  rounded_to(elements.data_type)};
  void* const stream = device::cuda_stream(group_of_block.get_device());
  if constexpr (std::is_same_v<T, double>) {
    device::require_launched(functions.update_f64(call, stream));
  } else {
    device::require_launched(functions.update_f32(call, stream));
  }
}

#define BRAID_UPDATE(Factors)                                                                          \
  template void update(const at::Tensor&, const Elements<float>&, const std::vector<Factors<float>>&); \
  template void update(const at::Tensor&, const Elements<double>&, const std::vector<Factors<double>>&);
BRAID_UPDATE(optim::DescentFactors)
BRAID_UPDATE(optim::MomentumFactors)
BRAID_UPDATE(optim::AdagradFactors)
BRAID_UPDATE(optim::LionFactors)
BRAID_UPDATE(optim::AdamWFactors)
#undef BRAID_UPDATE

std::vector<double> squares(const param::ParamStore& store) {
  if (store.params().empty()) return {};
  const at::Tensor& grads = store.flat_grads();
  const optim::OptimCudaTable& functions = table(grads);
  const auto num_slices = static_cast<int64_t>(store.params().size());
  const int64_t num_blocks = store.num_flat() / optim::kFlatBlock;
  const at::Tensor first = first_blocks(store);
  const at::Tensor of_blocks = at::empty({num_blocks}, grads.options().dtype(at::kDouble));
  const at::Tensor of_slices = at::empty({num_slices}, of_blocks.options());
  const auto call = [&](auto zero) {
    using T = decltype(zero);
    return optim::FlatSquares<T>{grads.const_data_ptr<T>(),
                                 num_blocks,
                                 num_slices,
                                 first.const_data_ptr<int64_t>(),
                                 of_blocks.mutable_data_ptr<double>(),
                                 of_slices.mutable_data_ptr<double>()};
  };
  void* const stream = device::cuda_stream(grads.get_device());
  device::require_launched(grads.scalar_type() == at::kDouble ? functions.squares_f64(call(double{}), stream)
                                                              : functions.squares_f32(call(float{}), stream));
  const at::Tensor host = of_slices.cpu();
  return {host.const_data_ptr<double>(), host.const_data_ptr<double>() + num_slices};
}

}  // namespace braid::on_device
