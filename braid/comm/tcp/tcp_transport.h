// The transport over TCP sockets of braid's own: one connection to each peer, whose bytes are those of
// message_stream.h.
//
// A thread sends and receives while the rank computes. While the rank waits, it does so itself, so that no other thread
// has to wake it. Everything on the connections is clear text.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "braid/comm/transport/message_stream.h"
#include "braid/comm/transport/transport.h"
#include "braid/control/socket.h"

namespace braid::comm::tcp {

class SocketStream;

// Thread-safe.
class TcpTransport final : public transport::Transport {
 public:
  // `sockets` are connected to the peers, by rank; that of the rank itself is empty.
  TcpTransport(int rank, std::vector<control::Socket> sockets);
  ~TcpTransport() override;

  void start(Receiver& receiver) override;
  void send(const transport::MessagePtr& message) override;
  void fetch(int peer, int32_t payload, const transport::MessagePtr& receive) override;
  void refuse(int, int32_t, int64_t) override {}
  void leave() override { send_to_all(transport::MessageStream::Notice::Leave); }
  void end() override { send_to_all(transport::MessageStream::Notice::End); }
  bool may_stop() const override;
  void stop() override;

  uint64_t events() const override { return events_.load(); }
  void notify() override;
  void sleep(uint64_t seen, double seconds) override;
  double longest_sleep() const override { return 0.02; }  // a failure of the world may be no event
  void advance() override;

  int64_t claim_group() override { return static_cast<int64_t>(rank_) << 32 | ++num_groups_; }
  std::shared_ptr<void> join_group(int64_t, int64_t, int) override { return nullptr; }

 private:
  static constexpr uint64_t kWake = ~uint64_t{0};  // identifies wake_ in the poller; a peer is identified by its rank
  enum class Closed { No, Unreported, Reported };
  struct Peer {
    std::unique_ptr<transport::MessageStream> messages;  // null for the rank itself
    SocketStream* stream = nullptr;                      // of `messages`
    bool watches_room = false;                           // the poller waits until the socket takes bytes
    bool ready = false;                                  // the socket may have bytes, or take some
    Closed closed = Closed::No;
  };

  void send_to_all(transport::MessageStream::Notice notice);
  void move_all();
  void find_ready();
  void move(Peer& peer);
  void run();
  void report_closed();
  void watch(Peer& peer);
  // Waits for a socket or notify(). Returns when there may be something to move.
  void wait_for_sockets(double seconds);
  void take_wake();

  const int rank_;
  Receiver* receiver_ = nullptr;
  control::Socket poller_, wake_;  // an epoll and an event descriptor
  std::atomic<int> num_groups_{0};
  std::atomic<uint64_t> events_{0};
  std::atomic<int> num_sleeping_{0};  // threads of the rank in sleep()
  std::mutex sleeping_;
  std::condition_variable woken_;
  bool polled_ = false;  // a thread in sleep() waits for sockets
  // Recursive, because the receiver may send while it is called.
  mutable std::recursive_mutex mutex_;
  bool stopped_ = false, moving_ = false, move_again_ = false;
  std::vector<Peer> peers_;
  std::thread thread_;
};

}  // namespace braid::comm::tcp
