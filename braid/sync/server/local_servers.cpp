// The channels of the workers, and the error that a worker throws if a server has failed.
#include "braid/sync/server/local_servers.h"

#include <exception>

#include "braid/param/memory_account.h"

namespace braid {
namespace {

LocalServersOptions placed(LocalServersOptions options) {
  options.server.first_worker = options.num_servers;
  return options;
}

}  // namespace

LocalServers::LocalServers(const KeyShape& whole, const LocalServersOptions& options)
    : shares_(whole, options.num_servers),
      options_(placed(options)),
      hub_(options.num_servers + options.server.num_workers) {
  const param::MemoryScope scope(param::MemoryCategory::Servers);
  for (int number = 0; number < options.num_servers; ++number) {
    auto channel = hub_.endpoint(number);
    if (options.wrap) channel = options.wrap(std::move(channel));
    const sync::server::KeyRange elements = shares_.elements.of(number);
    sync::server::ServerThread::Part part{.shape = shares_.part(number),
                                          .rule = options_.rule,
                                          .not_decayed = sync::server::ranges_within(options_.not_decayed, elements),
                                          .options = options_.server};
    if (options_.initial.defined()) part.initial = options_.initial.narrow(0, elements.begin, elements.size());
    // The error is recorded before the channel closes, so workers then find it.
    const auto failed = [errors = errors_, number] { errors->add(number, std::current_exception()); };
    servers_.push_back(std::make_unique<sync::server::ServerThread>(part, std::move(channel), failed));
  }
  options_.initial.reset();
}

LocalServers::~LocalServers() = default;

std::unique_ptr<Channel> LocalServers::worker_channel(int worker) {
  return std::make_unique<sync::server::WorkerChannel>(hub_.endpoint(options_.num_servers + worker), errors_);
}

std::vector<ServerReport> LocalServers::finish() {
  hub_.close_untaken();
  std::vector<ServerReport> reports;
  for (const auto& server : servers_) {
    reports.push_back(server->finish());
    errors_->rethrow(server->endpoint());
  }
  return reports;
}

}  // namespace braid
