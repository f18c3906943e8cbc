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

}  // namespace

int64_t add_tied_uses(const param::ParamStore& store, Communicator& tied) {
  int64_t bytes = 0;
  for (const param::Parameter& param : store.params()) {
    if (param.uses == 1) continue;
    const at::Tensor& sum = !store.is_sharded() ? param.main_grad : store.owned()[store.unit_of(param)].grad;
    for (const param::UseGrad& use : param.use_grads) {  // empty if gradients are sharded: the sink has added the uses
      if (use.slice.data_ptr() != param.main_grad.data_ptr()) sum.add_(owned_of(store, param, use.slice));
    }
    if (static_cast<int>(param.local_uses.size()) == param.uses) continue;
    const comm::CallName name(param.name);
    tied.all_reduce(sum, ReduceOp::Sum).order_before(tied.queue());
    bytes += all_reduce_bytes(sum, tied.size());
  }
  return bytes;
}

}  // namespace braid::sync
