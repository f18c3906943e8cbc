// Masters are averaged, and rounded to what layers compute with.
#include "braid/sync/mean_of_replicas.h"

#include <c10/core/GradMode.h>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid::sync {

MeanOfReplicas::MeanOfReplicas(param::ParamStore& store, Communicator& replicas) : store_(store) {
  check(store.sharding().what == param::Sharded::Nothing, "replicas that train apart have whole parameters");
  const c10::AutoGradMode no_grad(false);
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  const at::Tensor& masters = store.flat_master();
  own_ = masters.detach().clone();
  replicas.all_reduce(masters, ReduceOp::Sum).order_before(replicas.queue());
  masters.div_(replicas.size());
  store.round_masters();
}

MeanOfReplicas::~MeanOfReplicas() {
  const c10::AutoGradMode no_grad(false);
  store_.flat_master().copy_(own_);
  store_.round_masters();
}

}  // namespace braid::sync
