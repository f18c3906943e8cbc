// Moving bytes between message streams and sockets.
#include "braid/comm/tcp/tcp_transport.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/started_thread.h"

namespace braid::comm::tcp {

// Small reads come from a buffer, so that a short message takes one system call.
class SocketStream final : public transport::ByteStream {
 public:
  explicit SocketStream(control::Socket socket) : socket_(std::move(socket)) {}

  int64_t write(const void* from, int64_t count) override {
    if (!closed_.empty()) return 0;
    const auto [sent, closed] = socket_.send({static_cast<const char*>(from), static_cast<size_t>(count)});
    if (!closed.empty()) closed_ = closed;
    return static_cast<int64_t>(sent);
  }

  int64_t read(void* to, int64_t count) override {
    if (filled_ == taken_ && count >= kBufferBytes) return receive(to, count);
    if (filled_ == taken_) {
      taken_ = 0;
      filled_ = receive(buffer_.get(), kBufferBytes);
    }
    const int64_t piece = std::min(count, filled_ - taken_);
    if (piece > 0) std::memcpy(to, buffer_.get() + taken_, static_cast<size_t>(piece));
    taken_ += piece;
    return piece;
  }

  int descriptor() const { return socket_.descriptor(); }
  // Returns the reason why the connection is closed; empty while it is open.
  const std::string& closed() const { return closed_; }

 private:
  static constexpr int64_t kBufferBytes = 16 << 10;

  int64_t receive(void* to, int64_t count) {
    if (!closed_.empty()) return 0;
    const auto [received, closed] = socket_.receive({static_cast<char*>(to), static_cast<size_t>(count)});
    if (!closed.empty()) closed_ = closed;
    return static_cast<int64_t>(received);
  }

  control::Socket socket_;
  std::string closed_;
  std::unique_ptr<std::byte[]> buffer_ = std::make_unique_for_overwrite<std::byte[]>(kBufferBytes);
  int64_t filled_ = 0, taken_ = 0;  // bytes of the buffer
};

namespace {

constexpr double kIdleSeconds = 0.2;                   // of the thread, without anything to move
constexpr std::chrono::microseconds kStandAside(500);  // of the thread, while the rank moves bytes itself
constexpr int kTurns = 16;                             // reads or writes of one peer before the others have their turn
constexpr size_t kFewPeers = 4;  // reading from each of them is cheaper than asking which is ready

}  // namespace

TcpTransport::TcpTransport(int rank, std::vector<control::Socket> sockets)
    : rank_(rank), poller_(epoll_create1(EPOLL_CLOEXEC)), wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!poller_ || !wake_) throw RunError("the system has no descriptor left for connections");
  epoll_event event{.events = EPOLLIN, .data = {.u64 = kWake}};
  epoll_ctl(poller_.descriptor(), EPOLL_CTL_ADD, wake_.descriptor(), &event);
  for (control::Socket& socket : sockets) {
    Peer& peer = peers_.emplace_back();
    if (!socket) continue;
    socket.be_patient();  // a peer that is stopped takes nothing; the control channel decides whether it has failed
    auto stream = std::make_unique<SocketStream>(std::move(socket));
    peer.stream = stream.get();
    peer.messages = std::make_unique<transport::MessageStream>(static_cast<int>(peers_.size()) - 1, std::move(stream));
    event.data.u64 = peers_.size() - 1;
    epoll_ctl(poller_.descriptor(), EPOLL_CTL_ADD, peer.stream->descriptor(), &event);
  }
}

TcpTransport::~TcpTransport() { stop(); }

void TcpTransport::start(Receiver& receiver) {
  receiver_ = &receiver;
  if (peers_.size() > 1) thread_ = started_thread("connections", [this] { run(); });
}

void TcpTransport::send(const transport::MessagePtr& message) {
  const std::scoped_lock hold(mutex_);
  if (stopped_) return;
  peers_[message->route.peer].messages->send(message);
  move_all();
}

void TcpTransport::fetch(int, int32_t, const transport::MessagePtr&) {
  check(false, "messages over sockets carry their bytes");
}

void TcpTransport::send_to_all(transport::MessageStream::Notice notice) {
  const std::scoped_lock hold(mutex_);
  for (Peer& peer : peers_) {
    if (!peer.messages || stopped_) continue;
    peer.messages->send(notice);
  }
  move_all();
}

bool TcpTransport::may_stop() const {
  const std::scoped_lock hold(mutex_);
  return std::ranges::all_of(peers_, [](const Peer& peer) {
    return !peer.messages || peer.closed == Closed::Reported ||
           (peer.messages->peer_has_ended() && !peer.messages->has_unsent());
  });
}

void TcpTransport::stop() {
  {
    const std::scoped_lock hold(mutex_);
    stopped_ = true;
  }
  const uint64_t one = 1;
  (void)!write(wake_.descriptor(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
  std::vector<Peer> dropped;
  const std::scoped_lock hold(mutex_);
  dropped.swap(peers_);
}

// A thread that sleeps has counted itself before it looked at the events.
void TcpTransport::notify() {
  events_.fetch_add(1);
  if (num_sleeping_.load() == 0) return;
  const uint64_t one = 1;
  (void)!write(wake_.descriptor(), &one, sizeof one);
  const std::scoped_lock hold(sleeping_);
  woken_.notify_all();
}

// One thread waits for sockets. The others wait for it, because one of two threads may take the event of both out of
// wake_. When it returns, one of them takes its place.
void TcpTransport::sleep(uint64_t seen, double seconds) {
  const double most = std::min(seconds, longest_sleep());
  num_sleeping_.fetch_add(1);
  {
    std::unique_lock hold(sleeping_);
    if (polled_) {
      woken_.wait_for(hold, std::chrono::duration<double>(most), [&] { return events_.load() != seen || !polled_; });
    } else if (events_.load() == seen) {
      polled_ = true;
      hold.unlock();
      wait_for_sockets(most);
      hold.lock();
      polled_ = false;
      woken_.notify_one();
    }
  }
  num_sleeping_.fetch_sub(1);
}

void TcpTransport::wait_for_sockets(double seconds) {
  epoll_event event;
  const int milliseconds = std::max(1, static_cast<int>(seconds * 1e3));
  if (epoll_wait(poller_.descriptor(), &event, 1, milliseconds) > 0) take_wake();
}

void TcpTransport::take_wake() {
  uint64_t count = 0;
  (void)!read(wake_.descriptor(), &count, sizeof count);
}

void TcpTransport::advance() {
  const std::scoped_lock hold(mutex_);
  move_all();
}

// REQUIRES: mutex_ is held. What the receiver sends meanwhile is moved by the outer call, so no stream is entered
// twice.
void TcpTransport::move_all() {
  move_again_ = true;
  if (moving_) return;
  moving_ = true;
  while (!stopped_ && std::exchange(move_again_, false)) {
    find_ready();
    for (Peer& peer : peers_) {
      if (peer.messages && (peer.ready || peer.messages->has_unsent())) move(peer);
    }
  }
  moving_ = false;
}

// REQUIRES: mutex_ is held.
void TcpTransport::find_ready() {
  const bool few = peers_.size() <= kFewPeers + 1;
  for (Peer& peer : peers_) peer.ready = few;
  if (few) return;
  std::vector<epoll_event> events(peers_.size() + 1);
  const int count = epoll_wait(poller_.descriptor(), events.data(), static_cast<int>(events.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (const uint64_t peer = events[i].data.u64; peer != kWake) peers_[peer].ready = true;
  }
}

// REQUIRES: mutex_ is held.
void TcpTransport::move(Peer& peer) {
  if (peer.closed != Closed::No) return;
  for (int turn = 0; peer.messages->push(*receiver_) && turn < kTurns; ++turn) continue;
  for (int turn = 0; peer.messages->pull(*receiver_); ++turn) {
    if (turn < kTurns) continue;
    move_again_ = true;  // the rest comes after the other peers
    break;
  }
  if (!peer.stream->closed().empty()) {
    peer.closed = Closed::Unreported;
    epoll_ctl(poller_.descriptor(), EPOLL_CTL_DEL, peer.stream->descriptor(), nullptr);
    return;
  }
  if (peer.messages->has_unsent() != peer.watches_room) watch(peer);
}

void TcpTransport::watch(Peer& peer) {
  peer.watches_room = !peer.watches_room;
  const auto rank = static_cast<uint64_t>(&peer - peers_.data());
  epoll_event event{.events = peer.watches_room ? EPOLLIN | EPOLLOUT : EPOLLIN, .data = {.u64 = rank}};
  epoll_ctl(poller_.descriptor(), EPOLL_CTL_MOD, peer.stream->descriptor(), &event);
}

void TcpTransport::run() {
  for (;;) {
    {
      const std::scoped_lock hold(mutex_);
      if (stopped_) return;
    }
    report_closed();
    if (num_sleeping_.load() > 0) {
      std::this_thread::sleep_for(kStandAside);
      continue;
    }
    epoll_event event;
    epoll_wait(poller_.descriptor(), &event, 1, static_cast<int>(kIdleSeconds * 1e3));
    if (num_sleeping_.load() > 0) continue;
    take_wake();
    advance();
  }
}

// The receiver may wait for the name of the failure, so the lock is not held.
void TcpTransport::report_closed() {
  std::vector<std::pair<int, std::string>> closed;
  {
    const std::scoped_lock hold(mutex_);
    for (int rank = 0; rank < static_cast<int>(peers_.size()); ++rank) {
      Peer& peer = peers_[rank];
      if (peer.closed == Closed::Unreported) closed.emplace_back(rank, peer.stream->closed());
    }
  }
  for (const auto& [rank, why] : closed) {
    receiver_->closed(rank, why);
    const std::scoped_lock hold(mutex_);
    if (!stopped_) peers_[rank].closed = Closed::Reported;
    notify();
  }
}

}  // namespace braid::comm::tcp
