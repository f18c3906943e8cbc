// The threads of the servers, and the error that a worker throws if a server has failed.
#include "braid/sync/server/local_servers.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "braid/base/started_thread.h"
#include "braid/base/text.h"
#include "braid/param/memory_account.h"

namespace braid {
namespace {

LocalServersOptions placed(LocalServersOptions options) {
  options.server.first_worker = options.num_servers;
  return options;
}

// A worker's endpoint. Servers are the first endpoints. A server that fails records its error before its channel
// closes.
class WorkerChannel final : public Channel {
 public:
  WorkerChannel(std::unique_ptr<Channel> channel, std::shared_ptr<const sync::server::ServerErrors> errors)
      : channel_(std::move(channel)), errors_(std::move(errors)) {}

  int endpoint() const override { return channel_->endpoint(); }
  int num_endpoints() const override { return channel_->num_endpoints(); }
  Delivery send(int peer, int tag, ChannelMessage message) override {
    const Delivery delivery = channel_->send(peer, tag, std::move(message));
    if (delivery == Delivery::PeerClosed) errors_->rethrow(peer);
    return delivery;
  }
  ChannelEvent recv_any(int tag, Time deadline) override {
    ChannelEvent event = channel_->recv_any(tag, deadline);
    if (event.kind == ChannelEvent::Kind::Closed) errors_->rethrow(event.peer);
    return event;
  }
  void close() override { channel_->close(); }

 private:
  const std::unique_ptr<Channel> channel_;
  const std::shared_ptr<const sync::server::ServerErrors> errors_;
};

}  // namespace

class LocalServers::Server {
 public:
  // Serves the range `elements` of the flat parameters.
  Server(const KeyShape& shape, const LocalServersOptions& options, const sync::server::KeyRange& elements,
         std::unique_ptr<Channel> channel, sync::server::ServerErrors& errors)
      : shard_(shape, options.rule, within(options.not_decayed, elements)),
        channel_(std::move(channel)),
        logic_(options.server, shard_, *channel_),
        errors_(errors),
        rank_(param::accounted_rank()) {
    if (options.initial.defined()) shard_.set_elements(options.initial.narrow(0, elements.begin, elements.size()));
    thread_ = started_thread<std::jthread>("a parameter server", [this] { run(); });
  }
  ~Server() { channel_->close(); }

  ServerReport finish() {
    if (thread_.joinable()) thread_.join();
    errors_.rethrow(channel_->endpoint());
    return logic_.report();
  }

 private:
  void run() {
    pthread_setname_np(pthread_self(), cat("server ", channel_->endpoint()).c_str());
    if (rank_) param::account_memory_to(*rank_);
    const param::MemoryScope scope(param::MemoryCategory::Servers);
    try {
      logic_.serve();
    } catch (...) {
      errors_.add(channel_->endpoint(), std::current_exception());  // before close(): workers then look for the error
      channel_->close();
    }
  }

  sync::server::ServerShard shard_;
  const std::unique_ptr<Channel> channel_;
  ParameterServer logic_;
  sync::server::ServerErrors& errors_;
  const std::optional<int> rank_;
  std::jthread thread_;  // last member, because the thread uses the others
};

LocalServers::LocalServers(const KeyShape& whole, const LocalServersOptions& options)
    : shares_(whole, options.num_servers),
      options_(placed(options)),
      hub_(options.num_servers + options.server.num_workers) {
  const param::MemoryScope scope(param::MemoryCategory::Servers);
  for (int number = 0; number < options.num_servers; ++number) {
    auto channel = hub_.endpoint(number);
    if (options.wrap) channel = options.wrap(std::move(channel));
    servers_.push_back(std::make_unique<Server>(shares_.part(number), options_, shares_.elements.of(number),
                                                std::move(channel), *errors_));
  }
  options_.initial.reset();
}

LocalServers::~LocalServers() = default;

std::vector<sync::server::KeyRange> LocalServers::within(const std::vector<sync::server::KeyRange>& ranges,
                                                         const sync::server::KeyRange& of) {
  std::vector<sync::server::KeyRange> part;
  for (const sync::server::KeyRange& range : ranges) {
    const int64_t begin = std::max(range.begin, of.begin), end = std::min(range.end, of.end);
    if (begin < end) part.push_back({begin - of.begin, end - of.begin});
  }
  return part;
}

std::unique_ptr<Channel> LocalServers::worker_channel(int worker) {
  return std::make_unique<WorkerChannel>(hub_.endpoint(options_.num_servers + worker), errors_);
}

std::vector<ServerReport> LocalServers::finish() {
  hub_.close_untaken();
  std::vector<ServerReport> reports;
  for (const auto& server : servers_) reports.push_back(server->finish());
  return reports;
}

}  // namespace braid
