// Process ranks as threads of the test, with connections in memory.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "braid/base/errors.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/comm/transport/wire_transport.h"
#include "tests/comm/rank_threads.h"

namespace braid::comm::tests {

// Sends and receives of all ranks, which match by sender, receiver and tag.
class Medium {
 public:
  struct Request {
    const void* from;
    void* to;
    int64_t count;
    bool done = false, failed = false;
  };
  using RequestPtr = std::shared_ptr<Request>;
  using Route = std::tuple<int, int, int>;  // sender, receiver, tag

  explicit Medium(int num_ranks) : closed_(num_ranks) {}

  // From now on, nothing longer than 64 KiB that `sender` sends arrives.
  void hold_payloads(int sender) { held_sender_ = sender; }

  // Returns how much `sender` has sent to `receiver` that was received.
  int64_t bytes_moved(int sender, int receiver) {
    const std::scoped_lock hold(mutex_);
    return bytes_moved_[{sender, receiver}];
  }

  RequestPtr send(const Route& route, const void* bytes, int64_t count) {
    if (std::get<0>(route) == held_sender_ && count > 65536) return std::make_shared<Request>();
    return post(sends_, receives_, route, std::make_shared<Request>(Request{bytes, nullptr, count}),
                [](Request& own, Request& other) { move(own, other); });
  }
  RequestPtr receive(const Route& route, void* bytes, int64_t count) {
    return post(receives_, sends_, route, std::make_shared<Request>(Request{nullptr, bytes, count}),
                [](Request& own, Request& other) { move(other, own); });
  }
  void wait(const Request& request, const Route& route) {
    std::unique_lock hold(mutex_);
    changed_.wait(hold, [&] { return request.done || request.failed || is_closed(route); });
    if (!request.done) throw transport::WireError("closed");
  }
  void fail(Request& request) {
    const std::scoped_lock hold(mutex_);
    request.failed = true;
    changed_.notify_all();
  }
  void close(int rank) {
    const std::scoped_lock hold(mutex_);
    closed_[rank] = true;
    changed_.notify_all();
  }

 private:
  using Requests = std::map<Route, std::deque<RequestPtr>>;

  static void move(Request& send, Request& receive) {
    if (send.count > 0) std::memcpy(receive.to, send.from, send.count);
    send.done = receive.done = true;
  }

  bool is_closed(const Route& route) const { return closed_[std::get<0>(route)] || closed_[std::get<1>(route)]; }

  template <class Match>
  RequestPtr post(Requests& own, Requests& others, const Route& route, RequestPtr request, const Match& match) {
    const std::scoped_lock hold(mutex_);
    if (is_closed(route)) throw transport::WireError("closed");
    auto& waiting = others[route];
    if (waiting.empty()) {
      own[route].push_back(request);
    } else {
      match(*request, *waiting.front());
      // The receive of a frame has space for the longest.
      bytes_moved_[{std::get<0>(route), std::get<1>(route)}] += std::min(request->count, waiting.front()->count);
      waiting.pop_front();
      changed_.notify_all();
    }
    return request;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Requests sends_, receives_;
  std::map<std::pair<int, int>, int64_t> bytes_moved_;
  std::vector<bool> closed_;
  std::atomic<int> held_sender_{-1};
};

class MemoryWire final : public transport::Wire {
 public:
  MemoryWire(Medium& medium, int rank) : medium_(medium), rank_(rank) {}

  std::unique_ptr<Transfer> send(const void* bytes, int64_t count, int peer, int tag) override {
    const Medium::Route route{rank_, peer, tag};
    return std::make_unique<MemoryTransfer>(medium_, medium_.send(route, bytes, count), route);
  }
  std::unique_ptr<Transfer> receive(void* bytes, int64_t count, int peer, int tag) override {
    const Medium::Route route{peer, rank_, tag};
    return std::make_unique<MemoryTransfer>(medium_, medium_.receive(route, bytes, count), route);
  }
  void abort() override { medium_.close(rank_); }

 private:
  class MemoryTransfer final : public Transfer {
   public:
    MemoryTransfer(Medium& medium, Medium::RequestPtr request, const Medium::Route& route)
        : medium_(medium), request_(std::move(request)), route_(route) {}
    void wait() override { medium_.wait(*request_, route_); }
    void abort() override { medium_.fail(*request_); }

   private:
    Medium& medium_;
    const Medium::RequestPtr request_;
    const Medium::Route route_;
  };

  Medium& medium_;
  const int rank_;
};

class MemoryTransport : public transport::WireTransport {
 public:
  MemoryTransport(Medium& medium, int rank, int size) : WireTransport(rank, size) {
    set_wire(std::make_unique<MemoryWire>(medium, rank));
  }
};

inline std::unique_ptr<Communicator> world_over(std::unique_ptr<transport::Transport> transport, RankOptions options,
                                                int rank, FailureState& failures, Queue& queue) {
  options.rank = rank;
  options.failures = &failures;
  options.deadline_seconds = 100;
  return transport::ProcessCommunicator::of_world(std::move(transport), options, queue);
}

// Sets rank, failures and deadline of `options` for each rank.
inline void run_wire_ranks(Medium& medium, const RankOptions& options, const std::function<void(Communicator&)>& body) {
  OneFailureState failures;
  const auto make_world = [&](int rank, Queue& queue) {
    return world_over(std::make_unique<MemoryTransport>(medium, rank, options.size), options, rank, failures, queue);
  };
  run_ranks_on(options.size, failures, make_world, body);
}

}  // namespace braid::comm::tests
