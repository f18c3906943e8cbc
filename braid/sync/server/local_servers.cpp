#include "braid/sync/server/local_servers.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "braid/base/text.h"
#include "braid/param/memory_account.h"

namespace braid {
namespace {

LocalServersOptions placed(LocalServersOptions options) {
  options.server.first_worker = options.num_servers;
  return options;
}

}  // namespace

class LocalServers::Server {
 public:
  // Of `elements` of the flat parameters.
  Server(const KeyShape& shape, const LocalServersOptions& options, const KeyRange& elements,
         std::unique_ptr<Channel> channel)
      : shard_(shape, options.rule, within(options.not_decayed, elements)),
        channel_(std::move(channel)),
        logic_(options.server, shard_, *channel_),
        rank_(accounted_rank()) {
    if (options.initial.defined()) shard_.set_elements(options.initial.narrow(0, elements.begin, elements.size()));
    thread_ = std::jthread([this] { run(); });
  }
  ~Server() { channel_->close(); }

  ServerReport finish() {
    if (thread_.joinable()) thread_.join();
    if (error_) std::rethrow_exception(error_);
    return logic_.report();
  }

 private:
  // Workers learn of an error by the closed channel.
  void run() {
    pthread_setname_np(pthread_self(), cat("server ", channel_->endpoint()).c_str());
    if (rank_) account_memory_to(*rank_);
    const MemoryScope scope(MemoryCategory::Servers);
    try {
      logic_.serve();
    } catch (...) {
      error_ = std::current_exception();
      channel_->close();
    }
  }

  ServerShard shard_;
  const std::unique_ptr<Channel> channel_;
  ParameterServer logic_;
  const std::optional<int> rank_;
  std::exception_ptr error_;
  std::jthread thread_;  // last: it uses the others
};

LocalServers::LocalServers(const KeyShape& whole, const LocalServersOptions& options)
    : shares_(whole, options.num_servers),
      options_(placed(options)),
      hub_(options.num_servers + options.server.num_workers) {
  const MemoryScope scope(MemoryCategory::Servers);
  for (int number = 0; number < options.num_servers; ++number) {
    auto channel = hub_.endpoint(number);
    if (options.wrap) channel = options.wrap(std::move(channel));
    servers_.push_back(
        std::make_unique<Server>(shares_.part(number), options_, shares_.elements.of(number), std::move(channel)));
  }
  options_.initial.reset();
}

LocalServers::~LocalServers() = default;

std::vector<KeyRange> LocalServers::within(const std::vector<KeyRange>& ranges, const KeyRange& of) {
  std::vector<KeyRange> part;
  for (const KeyRange& range : ranges) {
    const int64_t begin = std::max(range.begin, of.begin), end = std::min(range.end, of.end);
    if (begin < end) part.push_back({begin - of.begin, end - of.begin});
  }
  return part;
}

std::unique_ptr<Channel> LocalServers::worker_channel(int worker) {
  return hub_.endpoint(options_.num_servers + worker);
}

std::vector<ServerReport> LocalServers::finish() {
  hub_.close_untaken();
  std::vector<ServerReport> reports;
  for (const auto& server : servers_) reports.push_back(server->finish());
  return reports;
}

}  // namespace braid
