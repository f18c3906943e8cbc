// Channels between threads of this process: a mailbox for each endpoint, nothing is copied.
#pragma once

#include <atomic>
#include <memory>

#include "braid/comm/channel.h"

namespace braid::comm::local {

class ChannelHub {
 public:
  explicit ChannelHub(int num_endpoints);

  // Closes the endpoints that nobody took.
  ~ChannelHub();

  // May be called once per number. The endpoint may outlive the hub.
  std::unique_ptr<Channel> endpoint(int number);
  // Closes the endpoints that nobody took. Until then peers see them as open.
  void close_untaken();

 private:
  class Mailboxes;
  class Endpoint;
  std::shared_ptr<Mailboxes> mailboxes_;
  std::vector<std::atomic<bool>> taken_;  // endpoints are taken on threads of their own
};

}  // namespace braid::comm::local
