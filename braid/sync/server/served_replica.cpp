// Gradients of a rank are its part of the mean over all: a worker pushes them times the number of workers, so that a
// server's mean over pushes, and a push alone, are both of the size of a gradient.
#include "braid/sync/server/served_replica.h"

#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/mul.h>

#include <cstring>
#include <exception>

#include "braid/base/errors.h"
#include "braid/param/memory_account.h"

namespace braid {
namespace {

// A run whose rank is held up from outside goes on afterwards; ranks that fail close their channels.
constexpr double kNoDeadline = 1e8;

Consistency consistency_of(const SyncSpec& spec) {
  return spec.consistency == "bsp" ? Consistency::Bsp : spec.consistency == "ssp" ? Consistency::Ssp : Consistency::Asp;
}

ServerRule rule_of(const SyncSpec& sync, const OptimizerSpec& optimizer) {
  using Kind = ServerRule::Kind;
  return {.kind = sync.server_optimizer == "adamw"     ? Kind::AdamW
                  : sync.server_optimizer == "adagrad" ? Kind::Adagrad
                                                       : Kind::Sgd,
          .beta1 = optimizer.beta1,
          .beta2 = optimizer.beta2,
          .eps = optimizer.eps,
          .weight_decay = optimizer.weight_decay};
}

std::vector<KeyRange> not_decayed(const ParamStore& store) {
  std::vector<KeyRange> ranges;
  for (const Parameter& param : store.params()) {
    const bool last = param.index + 1 == static_cast<int>(store.params().size());
    const int64_t end = last ? store.num_flat() : store.params()[static_cast<size_t>(param.index) + 1].offset;
    if (param.decay == WeightDecay::No) ranges.push_back({param.offset, end});
  }
  return ranges;
}

void overwrite(const at::Tensor& to, const at::Tensor& from) {
  std::memcpy(to.mutable_data_ptr(), from.const_data_ptr(), to.nbytes());
}

}  // namespace

// Ranks are threads: rank 0 makes the servers and tells the others where their handle is.
std::shared_ptr<LocalServers> ServedReplica::shared_servers(const Specs& specs) const {
  std::shared_ptr<LocalServers> servers;
  if (data_.rank() == 0) {
    const MemoryScope scope(MemoryCategory::Optimizer);
    LocalServersOptions options{.num_servers = specs.sync.servers,
                                .rule = rule_of(specs.sync, specs.optimizer),
                                .not_decayed = not_decayed(store_)};
    options.server = {.consistency = consistency_of(specs.sync),
                      .staleness = specs.sync.staleness,
                      .deadline_seconds = kNoDeadline,
                      .num_workers = data_.size()};
    const KeyShape shape{store_.flat_master().scalar_type(), store_.num_flat(), {}};
    servers = std::make_shared<LocalServers>(shape, options);
  }
  const at::Tensor address = at::full({1}, reinterpret_cast<int64_t>(&servers), at::kLong);
  data_.broadcast(address, 0).wait_host();
  if (data_.rank() != 0) {
    servers = *reinterpret_cast<const std::shared_ptr<LocalServers>*>(*address.const_data_ptr<int64_t>());
  }
  data_.barrier().wait_host();  // rank 0's handle stays until all have copied it
  return servers;
}

ServedReplica::ServedReplica(const Specs& specs, ParamStore& store, Communicator& data)
    : store_(store), data_(data), servers_(shared_servers(specs)), channel_(servers_->worker_channel(data.rank())) {
  check(store.flat_master().is_cpu(), "servers are on the host");
  client_ = std::make_unique<ServerClient>(servers_->shares(), servers_->rule(),
                                           ClientOptions{.consistency = consistency_of(specs.sync),
                                                         .staleness = specs.sync.staleness,
                                                         .push_every = specs.sync.push_every,
                                                         .pull_every = specs.sync.pull_every,
                                                         .deadline_seconds = kNoDeadline},
                                           *channel_);
  masters_.dense = store.flat_master().detach();
  if (data_.rank() == 0) client_->store(state_here(nullptr));
  data_.barrier().wait_host();
  pull(ServerClient::Freshness::Newest);
}

ServedReplica::~ServedReplica() {
  try {
    if (std::uncaught_exceptions() > 0) {
      data_.abort("ends by an exception");  // before the others hear of a closed channel: the first failure is this one
    } else {
      client_->leave();
    }
  } catch (const std::exception&) {
    // Nobody is left to leave.
  }
}

// Slices of a tied parameter's uses: as in BucketedAllReduce, for the uses of one rank.
void ServedReplica::finish() {
  for (Parameter& param : store_.params()) {
    for (size_t use = 1; use < param.use_grads.size(); ++use) {
      const at::Tensor& slice = param.use_grads[use].slice;
      if (slice.data_ptr() != param.main_grad.data_ptr()) param.main_grad.add_(slice);
    }
  }
}

UpdateBy ServedReplica::update(const OptimizerStep& step) {
  const double scale = step.grad_scale * data_.size();
  at::Tensor gradient = store_.flat_grads().narrow(0, 0, store_.num_flat());
  if (scale != 1) {
    if (!scaled_.defined()) scaled_ = at::empty_like(gradient);
    gradient = at::mul_out(scaled_, gradient, at::full({}, scale, gradient.options()));
  }
  client_->push({gradient, {}}, step.lr);
  return UpdateBy::Servers;
}

void ServedReplica::updated() { pull(ServerClient::Freshness::AsConfigured); }

void ServedReplica::pull(ServerClient::Freshness freshness) {
  if (client_->pull(masters_, freshness)) store_.round_masters();
}

// A pull answers after the worker's own pushes: when all have pulled, all pushes are in.
void ServedReplica::meet() {
  pull(ServerClient::Freshness::Newest);
  data_.barrier().wait_host();
  pull(ServerClient::Freshness::Newest);
  data_.barrier().wait_host();
}

void ServedReplica::fetch_moments(AdamW& optimizer) {
  const ShardState state = client_->fetch();
  if (state.elements.size() > 1) overwrite(optimizer.first_moment(), state.elements[1]);
  if (state.elements.size() > 2) overwrite(optimizer.second_moment(), state.elements[2]);
  optimizer.set_num_steps(state.num_steps);
  data_.barrier().wait_host();
}

ShardState ServedReplica::state_here(const AdamW* optimizer) const {
  ShardState state = zero_state(servers_->shares().whole, servers_->rule());
  state.elements[0] = masters_.dense;
  if (!optimizer) return state;
  if (state.elements.size() > 1) state.elements[1] = optimizer->first_moment();
  if (state.elements.size() > 2) state.elements[2] = optimizer->second_moment();
  state.num_steps = optimizer->num_steps();
  return state;
}

void ServedReplica::restored(const AdamW& optimizer) {
  data_.barrier().wait_host();
  if (data_.rank() == 0) client_->store(state_here(&optimizer));
  data_.barrier().wait_host();
  pull(ServerClient::Freshness::Newest);
}

int64_t ServedReplica::bytes_sent() const { return client_->report().bytes_sent; }

ReplicationTimes ServedReplica::times() const {
  return {client_->report().waiting_seconds, client_->report().last_staleness};
}

}  // namespace braid
