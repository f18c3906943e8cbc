// All ranks of the world make the channels of all parts together, one part after another. A rank has endpoints in the
// channels of its own part only, and a server in all of them.
#include "braid/sync/server/server_ranks.h"

#include <ATen/ops/empty.h>

#include <exception>
#include <mutex>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/agree.h"
#include "braid/comm/rank_activity.h"
#include "braid/param/memory_account.h"

namespace braid::sync::server {
namespace {

constexpr int kInitialTag = 0;

// Returns the parts in the order of their first workers. A rank that is no worker passes a part without workers.
std::vector<ServedPart> parts_of_all(const ServedPart& mine, Communicator& world) {
  std::vector<ServedPart> parts;
  const std::vector<ServedPart> all = comm::gather(world, "parts of the servers", mine);
  for (size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].first_worker == static_cast<int64_t>(rank)) parts.push_back(all[rank]);
  }
  return parts;
}

KeyShares shares_of(const SyncSpec& sync, const ServedPart& part) {
  return {KeyShape{part.type, part.num_elements, {}}, sync.servers};
}

int rank_of_server(const SyncSpec& sync, int number, const Communicator& world) {
  return world.size() - sync.servers + number;
}

void transfer(P2p::Kind kind, const at::Tensor& tensor, int peer, Communicator& world) {
  if (tensor.numel() == 0) return;
  const P2p message{kind, tensor, peer, kInitialTag};
  world.batch({&message, 1}).wait_host();
}

// The first exception of this rank's servers. Thread-safe.
class FirstError {
 public:
  void add(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::move(error);
  }
  void rethrow() const {
    const std::scoped_lock lock(mutex_);
    if (error_) std::rethrow_exception(error_);
  }

 private:
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

// Describes this rank to its supervisor, which reads the description also after the rank was killed. Its own thread
// only waits for the servers' threads.
class Serving {
 public:
  Serving(int number, Communicator& world) : activity_(world.activity()) {
    if (!activity_) return;
    activity_->begin(cat("server ", number));
    activity_->begin_serving("requests of workers");
  }
  ~Serving() {
    if (activity_) activity_->end_serving();
  }
  Serving(const Serving&) = delete;

 private:
  comm::RankActivity* const activity_;
};

}  // namespace

ServerThread::Part part_of_server(const SyncSpec& sync, const OptimizerSpec& optimizer, const ServedPart& part,
                                  int number) {
  const KeyShares shares = shares_of(sync, part);
  return {.shape = shares.part(number),
          .rule = optim::element_rule(optimizer),
          .not_decayed = ranges_within(part.not_decayed, shares.elements.of(number)),
          .options = {.consistency = sync.consistency,
                      .staleness = sync.staleness,
                      .deadline_seconds = kNoDeadline,
                      .first_worker = sync.servers,
                      .num_workers = static_cast<int>(part.num_workers)}};
}

std::unique_ptr<Channel> reach_servers(const SyncSpec& sync, const ServedPart& part, int worker,
                                       const at::Tensor& initial, Communicator& world) {
  std::unique_ptr<Channel> mine;
  for (const ServedPart& each : parts_of_all(part, world)) {
    const bool is_mine = each.first_worker == part.first_worker;
    const std::vector<int> numbers = is_mine ? std::vector<int>{sync.servers + worker} : std::vector<int>();
    auto made = world.make_channels(numbers, sync.servers + static_cast<int>(each.num_workers));
    if (is_mine) mine = std::move(made.front());
  }
  const KeyShares shares = shares_of(sync, part);
  for (int number = 0; worker == 0 && number < sync.servers; ++number) {
    const KeyRange range = shares.elements.of(number);
    transfer(P2p::Kind::Send, initial.narrow(0, range.begin, range.size()), rank_of_server(sync, number, world), world);
  }
  return mine;
}

namespace {

std::vector<std::unique_ptr<Channel>> channels_of_server(const SyncSpec& sync, const std::vector<ServedPart>& parts,
                                                         int number, Communicator& world) {
  std::vector<std::unique_ptr<Channel>> channels;
  for (const ServedPart& part : parts) {
    const int num_endpoints = sync.servers + static_cast<int>(part.num_workers);
    channels.push_back(std::move(world.make_channels({number}, num_endpoints).front()));
  }
  return channels;
}

}  // namespace

void serve(const SyncSpec& sync, const OptimizerSpec& optimizer, const ServerRankCalls& calls, Communicator& world) {
  const param::MemoryScope scope(param::MemoryCategory::Servers);
  const int number = world.rank() - rank_of_server(sync, 0, world);
  const std::vector<ServedPart> parts = parts_of_all({}, world);
  auto channels = channels_of_server(sync, parts, number, world);
  FirstError error;
  const auto failed = [&] {
    error.add(std::current_exception());
    try {
      throw;
    } catch (const std::exception& why) {
      world.abort(why.what());  // wakes the other servers of this rank
    }
  };
  std::vector<std::unique_ptr<ServerThread>> servers;
  for (size_t i = 0; i < parts.size(); ++i) {
    ServerThread::Part part = part_of_server(sync, optimizer, parts[i], number);
    part.initial = at::empty({part.shape.num_elements}, part.shape.type);
    part.options.memory_bytes = [rank = world.rank()] { return param::memory_use(rank).peak_total_bytes; };
    part.options.request = calls.request;
    part.options.activity = world.activity();
    transfer(P2p::Kind::Recv, part.initial, static_cast<int>(parts[i].first_worker), world);
    servers.push_back(std::make_unique<ServerThread>(part, std::move(channels[i]), failed));
  }
  const Serving serving(number, world);
  calls.on_begin();
  for (const auto& server : servers) server->finish();
  error.rethrow();
}

}  // namespace braid::sync::server
