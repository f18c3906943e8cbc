// All parcels of one rank: which side meets which, over one lane to each peer.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "braid/comm/failure_state.h"
#include "braid/comm/gloo/connection.h"
#include "braid/comm/gloo/notifier.h"

namespace braid::comm::gloo {

// Thread-safe.
class MatchTable final : private Connection::Receiver {
 public:
  // A peer that died is known by name so soon, if anybody watches it.
  static constexpr double kNamedSeconds = 0.3;

  // All of them outlive this. `engine` is null in a world of one rank. Throws RunError when no thread can be started.
  MatchTable(Engine* engine, int rank, int size, FailureState& failures, Notifier& news);
  ~MatchTable();

  int rank() const { return rank_; }

  // The parcel has been issued. Its owner may be told that it is done before this returns.
  void add(const MessagePtr& parcel);
  // The rank begins no more parcels on the lines Message and First: says so to all peers and refuses what comes too
  // late.
  void leave();
  // After leave(), once all parcels are done or lost: says so to all peers.
  void end();
  // Closes all connections and waits until no thread of this touches a parcel. The news of it are no failure.
  void stop();

  // The parcel is not done and never will be.
  bool lost(const Message& parcel) const;
  bool any_left() const { return num_left_.load() > 0; }
  // No message is in flight, or none that can ever come to its end.
  bool idle() const;
  // After end(): all peers have come to their end too, and have all that this rank has sent; or they are gone.
  bool all_ended() const;

 private:
  // A parcel that came before its receive.
  struct Early {
    MessageHeader header;
    std::unique_ptr<std::byte[]> bytes;
  };
  struct Peer {
    std::unique_ptr<Connection> lane;  // null for the rank itself
    std::atomic<bool> left{false}, ended{false};
    std::atomic<bool> gone{false};  // the connection is closed
    std::atomic<int> sends{0};      // long ones on the line Message that are not over
  };

  void arrive(int peer, const MessageHeader& header, const std::byte* bytes) override;
  void refused(const MessagePtr& parcel) override;
  void done(const MessagePtr& parcel) override;
  void closed(int peer, const std::string& why) override;

  void send(const MessagePtr& parcel);
  void receive(const MessagePtr& parcel);
  void take(const MessagePtr& parcel, const MessageHeader& header, const std::byte* bytes);
  void refuse(int peer, const MessageHeader& header);
  bool agrees(const Message& parcel, const MessageHeader& header);
  void note_left(int peer);
  void count_send(const Message& parcel, int change);
  void finish(const MessagePtr& parcel);

  Engine* const engine_;
  const int rank_, size_;
  FailureState& failures_;
  Notifier& news_;
  std::vector<Peer> peers_;
  std::atomic<int> num_left_{0};
  std::atomic<bool> stopping_{false};

  mutable std::mutex mutex_;
  bool leaving_ = false;
  std::map<Route, std::deque<Early>> early_;
  std::map<Route, std::deque<MessagePtr>> receives_;
};

}  // namespace braid::comm::gloo
