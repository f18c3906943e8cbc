// A worker pushes the gradient of the mean over its replica's own samples. So a single push and a server's mean over
// pushes have the same scale.
#include "braid/sync/server/served_replica.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <exception>

#include "braid/base/errors.h"
#include "braid/comm/thread_ranks.h"
#include "braid/param/memory_account.h"
#include "braid/sync/node_groups.h"
#include "braid/sync/tied_uses.h"

namespace braid::sync::server {
namespace {

// No deadline: a run whose rank is held up from outside resumes later, and ranks that fail close their channels.
constexpr double kNoDeadline = 1e8;

std::vector<KeyRange> not_decayed(const param::ParamStore& store) {
  std::vector<KeyRange> ranges;
  for (const param::Parameter& param : store.params()) {
    const bool last = param.index + 1 == static_cast<int>(store.params().size());
    const int64_t end = last ? store.num_flat() : store.params()[static_cast<size_t>(param.index) + 1].offset;
    if (param.decay == param::WeightDecay::No) ranges.push_back({param.offset, end});
  }
  return ranges;
}

}  // namespace

// Rank 0 makes the servers, and all ranks share their ownership. Whichever rank fails from here on, a failure of the
// world ends waits for servers, as it ends all other waits (RankChannel).
std::shared_ptr<LocalServers> ServedReplica::shared_servers(const Specs& specs) const {
  check(workers_.thread_ranks() != nullptr, "servers are threads beside ranks that are threads");
  std::shared_ptr<LocalServers> servers;
  if (workers_.rank() == 0) {
    LocalServersOptions options{.num_servers = specs.sync.servers,
                                .rule = optim::element_rule(specs.optimizer),
                                .not_decayed = not_decayed(store_),
                                .initial = store_.flat_master().detach().narrow(0, 0, store_.num_flat())};
    options.server = {.consistency = consistency_,
                      .staleness = specs.sync.staleness,
                      .deadline_seconds = kNoDeadline,
                      .num_workers = workers_.size()};
    const KeyShape shape{store_.flat_master().scalar_type(), store_.num_flat(), {}};
    servers = std::make_shared<LocalServers>(shape, options);
  }
  return comm::shared(*workers_.thread_ranks(), std::move(servers), 0);
}

ServedReplica::ServedReplica(const Specs& specs, param::ParamStore& store, const ReplicaGroups& groups)
    : consistency_(specs.sync.consistency),
      store_(store),
      workers_(groups.replicas),
      tied_(groups.tied),
      servers_(shared_servers(specs)),
      channel_(std::make_unique<comm::RankChannel>(servers_->worker_channel(workers_.rank()), workers_)) {
  check(store.flat_master().is_cpu(), "servers are on the host");
  if (specs.ranks_per_replica > 1) {
    pair_ = workers_.split(workers_.rank() / specs.ranks_per_replica, workers_.rank(), "pair");
  }
  client_ = std::make_unique<ServerClient>(servers_->shares(), servers_->rule(),
                                           ClientOptions{.consistency = consistency_,
                                                         .staleness = specs.sync.staleness,
                                                         .push_every = specs.sync.push_every,
                                                         .pull_every = specs.sync.pull_every,
                                                         .deadline_seconds = kNoDeadline},
                                           *channel_);
  masters_.dense = store.flat_master().detach();
  pull(ServerClient::Freshness::Newest);
}

// Reports a failure to the world, because a destructor has no caller to throw to. The world keeps its first failure.
ServedReplica::~ServedReplica() {
  if (channel_->left_by_exception()) return;
  try {
    const param::MemoryScope scope(param::MemoryCategory::Communication);
    client_->leave();
  } catch (const std::exception& error) {
    workers_.abort(error.what());
  } catch (...) {
    workers_.abort("left the servers by something that is no std::exception");
  }
}

// Each rank that holds an end of the model pushes the sum of a tied parameter's uses over both ends to its own servers.
void ServedReplica::finish() {
  bytes_within_replica_ += add_tied_uses(store_, tied_);
  if (!pair_) return;
  pair_->all_reduce(flat_gradients(), ReduceOp::Sum).wait_host();
  bytes_within_replica_ += all_reduce_bytes(flat_gradients(), pair_->size());
}

UpdateBy ServedReplica::update(const optim::OptimizerStep& step) {
  at::Tensor gradient = flat_gradients();
  if (step.grad_scale != 1) {
    if (!scaled_.defined()) scaled_ = at::empty_like(gradient);
    gradient = at::mul_out(scaled_, gradient, at::full({}, step.grad_scale, gradient.options()));
  }
  const param::MemoryScope scope(param::MemoryCategory::Communication);
  client_->push({gradient, {}}, step.lr);
  if (consistency_ != Consistency::Bsp) replicas_ = Replicas::Apart;
  return UpdateBy::Servers;
}

void ServedReplica::updated() { pull(ServerClient::Freshness::AsConfigured); }

void ServedReplica::pull(ServerClient::Freshness freshness) {
  if (client_->pull(masters_, freshness)) store_.round_masters();
}

// Makes all replicas equal. A server answers a pull after the worker's own pushes, so once all have pulled, all pushes
// are applied.
void ServedReplica::meet() {
  {
    const param::MemoryScope scope(param::MemoryCategory::Communication);
    client_->push_rest();
  }
  pull(ServerClient::Freshness::Newest);
  workers_.barrier().wait_host();
  pull(ServerClient::Freshness::Newest);
  workers_.barrier().wait_host();
  replicas_ = Replicas::Alike;
}

void ServedReplica::fetch_states(optim::Optimizer& optimizer) {
  const ShardState state = client_->fetch();
  const std::vector<optim::OptimizerState>& states = optimizer.states();
  check(state.elements.size() == 1 + states.size(), "servers keep what the optimizer would");
  for (size_t i = 0; i < states.size(); ++i) overwrite(states[i].flat, state.elements[i + 1]);
  optimizer.set_num_steps(state.num_steps);
  workers_.barrier().wait_host();
}

void ServedReplica::saved(optim::Optimizer& optimizer) { optimizer.release_states(); }

ShardState ServedReplica::state_here(optim::Optimizer& optimizer) const {
  ShardState state{.num_steps = optimizer.num_steps(), .elements = {masters_.dense}, .tables = {}};
  for (const optim::OptimizerState& kept : optimizer.states()) state.elements.push_back(kept.flat);
  return state;
}

void ServedReplica::restored(optim::Optimizer& optimizer) {
  client_->drop_rest();
  workers_.barrier().wait_host();
  if (workers_.rank() == 0) client_->store(state_here(optimizer));
  replicas_ = Replicas::Alike;
  optimizer.release_states();
  workers_.barrier().wait_host();
  pull(ServerClient::Freshness::Newest);
}

int64_t ServedReplica::bytes_sent() const { return client_->report().bytes_sent + bytes_within_replica_; }

ReplicationTimes ServedReplica::times() const {
  return {client_->report().waiting_seconds, client_->report().last_staleness};
}

}  // namespace braid::sync::server
