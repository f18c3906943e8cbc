#include "braid/sync/server/local_servers.h"

#include <pthread.h>

#include <algorithm>
#include <exception>
#include <thread>

#include "braid/base/text.h"

namespace braid {
namespace {

LocalServersOptions placed(LocalServersOptions options) {
  options.server.first_worker = options.num_servers;
  return options;
}

}  // namespace

class LocalServers::Server {
 public:
  Server(const KeyShape& shape, const LocalServersOptions& options, const std::vector<KeyRange>& not_decayed,
         std::unique_ptr<Channel> channel)
      : shard_(shape, options.rule, not_decayed),
        channel_(std::move(channel)),
        logic_(options.server, shard_, *channel_),
        thread_([this] { run(); }) {}
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
  std::exception_ptr error_;
  std::jthread thread_;  // last: it uses the others
};

LocalServers::LocalServers(const KeyShape& whole, const LocalServersOptions& options)
    : shares_(whole, options.num_servers),
      options_(placed(options)),
      hub_(options.num_servers + options.server.num_workers) {
  for (int number = 0; number < options.num_servers; ++number) {
    auto channel = hub_.endpoint(number);
    if (options.wrap) channel = options.wrap(std::move(channel));
    servers_.push_back(std::make_unique<Server>(
        shares_.part(number), options_, within(options.not_decayed, shares_.elements.of(number)), std::move(channel)));
  }
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
