// Channels between threads of this process. Each endpoint has a mailbox; nothing is copied.
#pragma once

#include <atomic>
#include <memory>

#include "braid/comm/channel.h"

namespace braid::comm::local {

class ChannelHub {
 public:
  explicit ChannelHub(int num_endpoints);

  // Closes the endpoints that were not taken.
  ~ChannelHub();

  // Returns the endpoint `number`, which may outlive the hub. REQUIRES: called once per number.
  std::unique_ptr<Channel> endpoint(int number);
  // Closes the endpoints that were not taken. Until then their peers see them as open.
  void close_untaken();

 private:
  class Mailboxes;
  class Endpoint;
  std::shared_ptr<Mailboxes> mailboxes_;
  std::vector<std::atomic<bool>> taken_;  // by endpoint; several threads take endpoints
};

}  // namespace braid::comm::local
