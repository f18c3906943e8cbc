// A worker pushes the gradient of the mean over its replica's own samples. So a single push and a server's mean over
// pushes have the same scale.
#include "braid/sync/server/served_replica.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <exception>

#include "braid/base/errors.h"
#include "braid/comm/agree.h"
#include "braid/comm/failure_state.h"
#include "braid/comm/op_name.h"
#include "braid/param/memory_account.h"
#include "braid/sync/ring_bytes.h"
#include "braid/sync/tied_uses.h"

namespace braid::sync::server {
namespace {

std::vector<KeyRange> not_decayed(const param::ParamStore& store) {
  std::vector<KeyRange> ranges;
  for (const param::Parameter& param : store.params()) {
    const bool last = param.index + 1 == static_cast<int>(store.params().size());
    const int64_t end = last ? store.num_flat() : store.params()[static_cast<size_t>(param.index) + 1].offset;
    if (param.decay == model::WeightDecay::No) ranges.push_back({param.offset, end});
  }
  return ranges;
}

// The numbers of the servers that run beside a worker.
std::vector<int> servers_of(int worker, int num_workers, int num_servers) {
  std::vector<int> numbers;
  for (int number = worker; number < num_servers; number += num_workers) numbers.push_back(number);
  return numbers;
}

}  // namespace

ServedReplica::ServedReplica(const Specs& specs, param::ParamStore& store, const ReplicaGroups& groups)
    : consistency_(specs.sync.consistency),
      store_(store),
      workers_(groups.replicas),
      tied_(groups.tied),
      exceptions_before_(std::uncaught_exceptions()),
      has_own_servers_(specs.with_servers != nullptr),
      shares_({store.flat_master().scalar_type(), store.num_flat(), {}}, specs.sync.servers) {
  check(store.flat_master().is_cpu(), "servers are on the host");
  if (specs.ranks_per_replica > 1) {
    pair_ = workers_.split(workers_.rank() / specs.ranks_per_replica, workers_.rank(), "pair");
  }
  {
    const comm::CallName name("first masters of workers");  // ends before the calls that servers make too
    workers_.broadcast(store.flat_master().detach(), 0).wait_host();
  }
  if (specs.with_servers) {
    channel_ = reach_servers(specs.sync, own_part(*specs.with_servers), workers_.rank(), store.flat_master().detach(),
                             *specs.with_servers);
  } else {
    start_servers(specs);
  }
  client_ = std::make_unique<ServerClient>(shares_, optim::element_rule(specs.optimizer),
                                           ClientOptions{.consistency = consistency_,
                                                         .staleness = specs.sync.staleness,
                                                         .push_every = specs.sync.push_every,
                                                         .pull_every = specs.sync.pull_every,
                                                         .deadline_seconds = kNoDeadline},
                                           *channel_);
  masters_.dense = store.flat_master().detach();
  pull(ServerClient::Freshness::Newest);
}

ServedPart ServedReplica::own_part(const Communicator& world) {
  return {.first_worker = comm::broadcast(workers_, "first worker", int64_t{world.rank()}),
          .num_workers = workers_.size(),
          .type = store_.flat_master().scalar_type(),
          .num_elements = store_.num_flat(),
          .not_decayed = not_decayed(store_)};
}

// A server that fails fails the world, whichever rank it runs beside.
void ServedReplica::start_servers(const Specs& specs) {
  const param::MemoryScope scope(param::MemoryCategory::Servers);
  const int num_servers = specs.sync.servers;
  std::vector<int> numbers = servers_of(workers_.rank(), workers_.size(), num_servers);
  numbers.push_back(num_servers + workers_.rank());
  auto channels = workers_.make_channels(numbers, num_servers + workers_.size());
  channel_ = std::make_unique<WorkerChannel>(std::move(channels.back()), errors_);
  channels.pop_back();
  const ServedPart whole = own_part(workers_);
  for (auto& channel : channels) {
    const auto failed = [this, number = channel->endpoint()] {
      try {
        throw;
      } catch (const CommError&) {  // the world has failed
      } catch (const std::exception& error) {
        errors_->add(number, std::current_exception());
        workers_.abort(error.what());
      }
    };
    const KeyRange elements = shares_.elements.of(channel->endpoint());
    ServerThread::Part part = part_of_server(specs.sync, specs.optimizer, whole, channel->endpoint());
    part.initial = store_.flat_master().detach().narrow(0, elements.begin, elements.size());
    servers_.push_back(std::make_unique<ServerThread>(part, std::move(channel), failed));
  }
}

bool ServedReplica::left_by_exception() const { return std::uncaught_exceptions() > exceptions_before_; }

// Reports a failure to the world, because a destructor has no caller to throw to. The world keeps its first failure.
ServedReplica::~ServedReplica() {
  if (left_by_exception()) {
    workers_.abort(comm::kEndsByException);
    return;
  }
  try {
    const param::MemoryScope scope(param::MemoryCategory::Communication);
    client_->leave();
    for (const auto& server : servers_) server->finish();
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
  const comm::CallName name("gradients of a pair");
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
  if (gradient.numel() == 0) gradient = at::Tensor();  // all of the rank's parameters are frozen
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

// A server answers a pull after the worker's own pushes.
int64_t ServedReplica::own() {
  pull(ServerClient::Freshness::Newest);
  return client_->clock();
}

void ServedReplica::fetch_states(optim::Optimizer& optimizer) {
  ShardState state = state_here(optimizer);
  client_->fetch(state);
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
  const ClientReport& report = client_->report();
  return {report.waiting_seconds, report.last_staleness,
          has_own_servers_ ? report.server_bytes : std::vector<int64_t>()};
}

}  // namespace braid::sync::server
