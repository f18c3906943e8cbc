// Adds the uses of tied parameters: first those on this rank, then those of other ranks.
#include "braid/sync/tied_uses.h"

#include "braid/comm/op_name.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {
namespace {

// Returns this rank's shard of one of the parameter's slices: all of it, or its part of the parameter's unit.
at::Tensor owned_of(const param::ParamStore& store, const param::Parameter& param, const at::Tensor& slice) {
  if (!store.is_sharded()) return slice;
  const param::Sharding& sharding = store.sharding();
  const int64_t length = store.units()[store.unit_of(param)].length() / sharding.parts;
  const int64_t begin = slice.storage_offset() - store.flat_grads().storage_offset();
  return store.flat_grads().narrow(0, begin + sharding.part * length, length);
}

// Returns this rank's shards of the gradients from all local uses but the first, as far as they are summed apart.
std::vector<at::Tensor> further_uses(const param::ParamStore& store, const param::Parameter& param) {
  std::vector<at::Tensor> further;
  if (!store.shards_gradients()) {
    for (const param::UseGrad& use : param.use_grads) {
      if (use.slice.data_ptr() != param.main_grad.data_ptr()) further.push_back(owned_of(store, param, use.slice));
    }
  } else if (store.reduction() == Reduction::Reproducible) {
    for (size_t place = 1; place < param.local_uses.size(); ++place) {
      further.push_back(store.in_memory(store.owned_grad(store.unit_of(param), static_cast<int>(place))));
    }
  }
  return further;
}

}  // namespace

int64_t add_tied_uses(const param::ParamStore& store, Communicator& tied) {
  int64_t bytes = 0;
  for (const param::Parameter& param : store.params()) {
    const bool is_apart = static_cast<int>(param.local_uses.size()) < param.uses;
    const bool is_summed = param.local_uses.size() == 1 || store.reduction() == Reduction::Fast;  // by the sink
    if (!is_apart && is_summed) continue;
    const auto add = [&](const at::Tensor& sum) {
      for (const at::Tensor& use : further_uses(store, param)) sum.add_(use);
      if (!is_apart) return;
      const comm::CallName name(param.name);
      tied.all_reduce(sum, ReduceOp::Sum).order_before(tied.queue());
      bytes += all_reduce_bytes(sum, tied.size());
    };
    const at::Tensor& sum = !store.is_sharded() ? param.main_grad : store.owned()[store.unit_of(param)].grad;
    store.is_on_disk(sum) ? store.disk()->change(sum, add) : add(sum);
  }
  return bytes;
}

}  // namespace braid::sync
