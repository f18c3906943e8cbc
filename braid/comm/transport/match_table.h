// All messages of one rank: finds the receive for each message that arrives.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "braid/comm/transport/transport.h"

namespace braid::comm::transport {

// Thread-safe.
class MatchTable final : private Transport::Receiver {
 public:
  // REQUIRES: `transport` and `failures` outlive this.
  // `host_of_rank` may be empty: all ranks are on one host.
  MatchTable(Transport& transport, int rank, int size, FailureState& failures, std::vector<int> host_of_rank);
  ~MatchTable() { stop(); }

  Transport& transport() const { return transport_; }

  // Issues a message. It may be done before this returns.
  void add(const MessagePtr& message);
  // Returns the bytes of the messages to other hosts.
  int64_t bytes_across_hosts() const { return bytes_across_hosts_; }
  // The rank issues no more messages on the kinds Batch and First. Peers get to know, and messages from them that no
  // receive will ever match are refused.
  void leave();
  // Returns when no thread touches a message any more. Closed connections are no failure from here on.
  void stop();

  // Returns true if the message is not done and never will be.
  bool lost(const Message& message) const;
  bool any_left() const { return num_left_.load() > 0; }
  // Returns true if the peer is lost or its connection is closed. Everything that it has sent has arrived before.
  bool gone(int peer) const { return peers_[peer].gone; }
  // Returns the last collective of a peer in a group of which a message has come; nothing if none has.
  std::optional<Call> last_call_of(int64_t group, int peer) const;
  // Returns true if no message of a batch, no send of a channel and no message that arrives is in flight, or none that
  // will ever be done.
  bool idle() const;

 private:
  struct Peer {
    std::atomic<bool> left{false}, ended{false}, gone{false};  // gone: the connection is closed
    std::atomic<int> sends{0};                                 // sends of batches and channels that are not done
    std::atomic<int> arriving{0};                              // receives whose message has begun to arrive
  };

  std::shared_ptr<Arrival> arrive(int peer, const MessageHeader& header, int32_t payload) override;
  void arrived(Arrival& arrival) override;
  void fetched(const MessagePtr& receive) override { finish(receive); }
  void sent(const MessagePtr& send) override;
  void refused(const MessagePtr& send) override;
  void left(int peer) override;
  void ended(int peer) override;
  void lost(int peer) override;
  void closed(int peer, const std::string& why) override;

  void send(const MessagePtr& message);
  void receive(const MessagePtr& message);
  void match(Arrival& arrival, const MessagePtr& receive);
  void deliver(const Arrival& arrival);
  bool agree(const Message& receive, const Arrival& arrival);
  void count_send(const Message& message, int change);
  void finish(const MessagePtr& message);

  Transport& transport_;
  const int rank_, size_;
  FailureState& failures_;
  std::vector<Peer> peers_;
  std::atomic<int> num_left_{0};
  std::atomic<bool> stopping_{false};
  const std::vector<int> host_of_rank_;
  std::atomic<int64_t> bytes_across_hosts_{0};

  mutable std::mutex mutex_;
  bool leaving_ = false;
  std::map<Route, std::deque<std::shared_ptr<Arrival>>> arrivals_;  // no receive has been posted for them
  std::map<Route, std::deque<MessagePtr>> receives_;                // no message has arrived for them
  std::map<std::pair<int64_t, int>, Call> last_calls_;              // by group and peer
};

}  // namespace braid::comm::transport
