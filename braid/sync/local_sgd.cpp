// Reduces gradients inside a replica, and averages the weights of all replicas at the end of a period.
#include "braid/sync/local_sgd.h"

#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/op_name.h"
#include "braid/param/memory_account.h"
#include "braid/sync/ring_bytes.h"

namespace braid::sync {

MeanOfReplicas::MeanOfReplicas(param::ParamStore& store, Communicator& replicas) : store_(store) {
  check(store.sharding().what == param::Sharded::Nothing, "replicas that train apart have whole parameters");
  const c10::AutoGradMode no_grad(false);
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  const at::Tensor& masters = store.flat_master();
  own_ = masters.detach().clone();
  const comm::CallName name("mean of replicas");
  replicas.all_reduce(masters, ReduceOp::Sum).order_before(replicas.queue());
  masters.div_(replicas.size());
  store.round_masters();
}

MeanOfReplicas::~MeanOfReplicas() {
  const c10::AutoGradMode no_grad(false);
  store_.flat_master().copy_(own_);
  store_.round_masters();
}

// In a local step gradients are all-reduced over a group of one rank, which adds tied uses and checks that every
// parameter is ready.
LocalSgd::LocalSgd(const LocalSgdPlan& plan, param::ParamStore& store, const ReplicaGroups& groups,
                   const MakeAllReduce& make)
    : plan_(plan),
      store_(store),
      groups_(groups),
      alone_(groups.replicas.split(groups.replicas.rank(), 0, "replica")),
      together_(make(groups)),
      apart_(make({*alone_, *alone_, *alone_, groups.tied})),
      gradients_(together_.get()) {
  if (!plan.outer) return;
  const param::MemoryScope scope(param::MemoryCategory::Optimizer);
  anchor_ = store.flat_master().detach().clone();
  momentum_ = at::zeros_like(anchor_);
}

void LocalSgd::begin_step(int64_t step) {
  step_ = step;
  gradients_ = plan_.is_local(step) ? apart_.get() : together_.get();
  gradients_->begin_step(step);
}

GradientsOf LocalSgd::gradients() const {
  return gradients_ == apart_.get() ? GradientsOf::OwnReplica : GradientsOf::AllReplicas;
}

void LocalSgd::updated() {
  if (!step_) return;  // no step has begun: masters were loaded
  const int64_t step = *std::exchange(step_, std::nullopt);
  const c10::AutoGradMode no_grad(false);
  if (!plan_.is_local(step)) {
    if (plan_.outer) anchor_.copy_(store_.flat_master());
    return;
  }
  replicas_ = Replicas::Apart;
  if (!plan_.synchronises(step)) return;
  average();
  if (plan_.outer) outer_step();
  store_.round_masters();
  replicas_ = Replicas::Alike;
}

void LocalSgd::average() {
  const at::Tensor& masters = store_.flat_master();
  const comm::CallName name("mean of replicas");
  groups_.replicas.all_reduce(masters, ReduceOp::Sum).order_before(groups_.replicas.queue());
  bytes_averaging_ += all_reduce_bytes(masters, groups_.replicas.size());
  masters.div_(groups_.replicas.size());
}

// Turns the masters, which hold the average, into the outer gradient and then into the new weights.
void LocalSgd::outer_step() {
  const at::Tensor& masters = store_.flat_master();
  const auto [lr, momentum] = *plan_.outer;
  masters.neg_().add_(anchor_);
  momentum_.mul_(momentum).add_(masters);
  anchor_.sub_(masters, lr).sub_(momentum_, lr * momentum);
  masters.copy_(anchor_);
}

// A released parameter was frozen when replicas were last equal, so its weights are those of that time.
void LocalSgd::resume(Replicas replicas, const std::vector<std::string>& released) {
  const c10::AutoGradMode no_grad(false);
  replicas_ = replicas;
  if (!plan_.outer) return;
  if (replicas == Replicas::Alike) anchor_.copy_(store_.flat_master());
  for (const param::Parameter& param : store_.params()) {
    if (std::ranges::find(released, param.name) == released.end()) continue;
    anchor_.narrow(0, param.offset, param.num_elements()).view(param.placement.local_shape).copy_(param.master);
  }
}

std::string LocalSgd::own_prefix() const {
  return groups_.replicas.rank() == 0 ? "" : cat("replica.", groups_.replicas.rank(), "/");
}

int64_t LocalSgd::bytes_sent() const { return together_->bytes_sent() + apart_->bytes_sent() + bytes_averaging_; }

std::vector<ReplicationState> LocalSgd::state() {
  if (!plan_.outer) return {};
  std::vector<ReplicationState> tensors;
  for (const param::Parameter& param : store_.params()) {
    const auto slice = [&](const at::Tensor& flat) {
      return flat.narrow(0, param.offset, param.num_elements()).view(param.placement.local_shape);
    };
    tensors.push_back({"outer.anchor/" + param.name, param.placement, slice(anchor_)});
    tensors.push_back({"outer.momentum/" + param.name, param.placement, slice(momentum_)});
  }
  return tensors;
}

}  // namespace braid::sync
