// A parameter server of this process: each server a thread, workers over channels of one hub.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/local/channel_hub.h"
#include "braid/sync/server/parameter_server.h"
#include "braid/sync/server/server_errors.h"

namespace braid {

struct LocalServersOptions {
  int num_servers = 1;
  optim::ElementRule rule = {};
  std::vector<sync::server::KeyRange> not_decayed = {};  // stretches of the flat parameters, ascending
  ServerOptions server = {};                             // first_worker is set here
  at::Tensor initial = {};                               // the flat parameters to begin with, copied; undefined: zeros
  // Goes around every server's channel; null: nothing.
  std::function<std::unique_ptr<Channel>(std::unique_ptr<Channel>)> wrap = nullptr;
};

class LocalServers {
 public:
  // Serves at once, tables zero. What the servers keep is accounted to this thread's rank, as MemoryCategory::Servers.
  LocalServers(const KeyShape& whole, const LocalServersOptions& options);
  // Ends the servers, whoever is still there.
  ~LocalServers();

  const KeyShares& shares() const { return shares_; }
  const optim::ElementRule& rule() const { return options_.rule; }

  // Each once, before finish(). A worker that finds a server gone by an exception throws the server's, out of any call
  // on the channel, which may outlive this.
  std::unique_ptr<Channel> worker_channel(int worker);

  // Waits until all workers have left or are lost, as those are whose channel nobody took. By server. Rethrows what a
  // server threw.
  std::vector<ServerReport> finish();

 private:
  class Server;
  static std::vector<sync::server::KeyRange> within(const std::vector<sync::server::KeyRange>& ranges,
                                                    const sync::server::KeyRange& of);

  const KeyShares shares_;
  LocalServersOptions options_;
  comm::local::ChannelHub hub_;
  const std::shared_ptr<sync::server::ServerErrors> errors_ = std::make_shared<sync::server::ServerErrors>();
  std::vector<std::unique_ptr<Server>> servers_;
};

}  // namespace braid
