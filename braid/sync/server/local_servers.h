// A parameter server in this process. Each server is a thread; workers reach them over channels of one hub.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/local/channel_hub.h"
#include "braid/sync/server/server_errors.h"
#include "braid/sync/server/server_thread.h"

namespace braid {

struct LocalServersOptions {
  int num_servers = 1;
  optim::ElementRule rule = {};
  std::vector<sync::server::KeyRange> not_decayed = {};  // ranges of the flat parameters, ascending
  ServerOptions server = {};                             // first_worker is set here
  at::Tensor initial = {};                               // initial flat parameters, copied; undefined: zeros
  // Wraps the channel of every server; null: no wrapper.
  std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel>)> wrap = nullptr;
};

class LocalServers {
 public:
  // Starts the servers, with zeros in all tables. Their memory counts for this thread's rank, as
  // MemoryCategory::Servers.
  LocalServers(const KeyShape& whole, const LocalServersOptions& options);
  // Ends the servers, even if workers have not left.
  ~LocalServers();

  const KeyShares& shares() const { return shares_; }
  const optim::ElementRule& rule() const { return options_.rule; }

  // Returns the channel of `worker`, which may outlive this. REQUIRES: called once per worker, before finish(). If a
  // server has ended by an exception, each call on the channel that finds the server closed throws that exception.
  std::unique_ptr<Channel> worker_channel(int worker);

  // Blocks until all workers have left or are lost. Workers whose channel was never taken count as lost. Returns the
  // reports by server. Rethrows the exception of a server.
  std::vector<ServerReport> finish();

 private:
  const KeyShares shares_;
  LocalServersOptions options_;
  comm::local::ChannelHub hub_;
  const std::shared_ptr<sync::server::ServerErrors> errors_ = std::make_shared<sync::server::ServerErrors>();
  std::vector<std::unique_ptr<sync::server::ServerThread>> servers_;
};

}  // namespace braid
