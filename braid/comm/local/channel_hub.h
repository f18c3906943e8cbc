// Channels between threads of this process: a mailbox for each endpoint, nothing is copied.
#pragma once

#include <memory>

#include "braid/comm/channel.h"

namespace braid {

class ChannelHub {
 public:
  explicit ChannelHub(int num_endpoints);

  // Each endpoint once. It may outlive the hub. An endpoint that nobody takes counts as open until the hub is gone.
  std::unique_ptr<Channel> endpoint(int number);
  ~ChannelHub();

 private:
  class Mailboxes;
  class Endpoint;
  std::shared_ptr<Mailboxes> mailboxes_;
  std::vector<bool> taken_;
};

}  // namespace braid
