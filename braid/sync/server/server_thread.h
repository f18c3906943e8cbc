// One server of a parameter server as a thread of this process.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "braid/sync/server/parameter_server.h"

namespace braid::sync::server {

class ServerThread {
 public:
  // A server's part of a model, and the places of its workers.
  struct Part {
    KeyShape shape;
    optim::ElementRule rule = {};
    std::vector<KeyRange> not_decayed = {};  // ranges of the part's elements, ascending
    at::Tensor initial = {};                 // initial elements, copied; undefined: zeros
    ServerOptions options = {};
  };
  // Starts the server. Its memory counts for this thread's rank, as MemoryCategory::Servers. If the server ends by an
  // exception, its thread calls `failed`, where the exception is std::current_exception(), and then closes the channel.
  ServerThread(const Part& part, std::unique_ptr<Channel> channel, std::function<void()> failed);
  // Ends the server, even if workers have not left.
  ~ServerThread() { channel_->close(); }

  int endpoint() const { return channel_->endpoint(); }
  // Blocks until all workers have left or are lost, or the server has failed.
  const ServerReport& finish();

 private:
  void run();

  ServerShard shard_;
  const std::unique_ptr<Channel> channel_;
  ParameterServer logic_;
  const std::function<void()> failed_;
  const std::optional<int> rank_;
  std::jthread thread_;  // last member, because the thread uses the others
};

// Returns the parts of `ranges` inside `of`, counted from its beginning.
std::vector<KeyRange> ranges_within(const std::vector<KeyRange>& ranges, const KeyRange& of);

}  // namespace braid::sync::server
