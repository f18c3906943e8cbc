// Process ranks as threads of the test, so that ThreadSanitizer sees them: over a wire in memory, with the connections
// of Gloo and MPI, and over shared memory.
#include <gtest/gtest.h>

#include <condition_variable>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "braid/comm/shm/shm_transport.h"
#include "braid/comm/tcp/make_tcp_world.h"
#include "braid/comm/transport/process_communicator.h"
#include "braid/comm/transport/wire_transport.h"
#include "tests/comm/conformance.h"
#include "tests/comm/conformance_channels.h"
#include "tests/comm/conformance_groups.h"
#include "tests/comm/failures.h"
#include "tests/comm/gloo_ranks.h"
#include "tests/comm/random_program.h"

namespace braid::comm::tests::transport_test {
namespace {

using transport::Wire;
using transport::WireError;

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

  RequestPtr send(const Route& route, const void* bytes, int64_t count) {
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
    if (!request.done) throw WireError("closed");
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
    if (is_closed(route)) throw WireError("closed");
    auto& waiting = others[route];
    if (waiting.empty()) {
      own[route].push_back(request);
    } else {
      match(*request, *waiting.front());
      waiting.pop_front();
      changed_.notify_all();
    }
    return request;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Requests sends_, receives_;
  std::vector<bool> closed_;
};

class MemoryWire final : public Wire {
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

class MemoryTransport final : public transport::WireTransport {
 public:
  MemoryTransport(Medium& medium, int rank, int size) : WireTransport(rank, size) {
    set_wire(std::make_unique<MemoryWire>(medium, rank));
  }
};

using MakeWorld = std::function<std::unique_ptr<Communicator>(int rank, Queue& queue)>;

// Throws what the rank that failed first has thrown.
void run_ranks_on(int num_ranks, FailureState& failures, const MakeWorld& make_world,
                  const std::function<void(Communicator&)>& body) {
  std::vector<std::exception_ptr> errors(num_ranks);
  const auto live = [&](int rank) {
    try {
      HostQueue queue;
      const auto world = make_world(rank, queue);
      try {
        body(*world);
      } catch (const std::exception& error) {
        failures.fail({rank, rank, error.what()});
        throw;
      }
    } catch (...) {
      errors[rank] = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < num_ranks; ++rank) threads.emplace_back(live, rank);
  }
  if (const auto failure = failures.failure()) {
    if (errors[failure->reporter]) std::rethrow_exception(errors[failure->reporter]);
    throw CommError({"ranks", failure->rank, 0, failure->why});
  }
}

std::unique_ptr<Communicator> world_over(std::unique_ptr<transport::Transport> transport, int rank, int num_ranks,
                                         FailureState& failures, Queue& queue) {
  return transport::ProcessCommunicator::of_world(
      std::move(transport), {.rank = rank, .size = num_ranks, .failures = &failures, .deadline_seconds = 100}, queue);
}

struct OverWire {
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 8 << 20;
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    Medium medium(num_ranks);
    OneFailureState failures;
    const auto make_world = [&](int rank, Queue& queue) {
      return world_over(std::make_unique<MemoryTransport>(medium, rank, num_ranks), rank, num_ranks, failures, queue);
    };
    run_ranks_on(num_ranks, failures, make_world, body);
  }
};

struct OverSharedMemory {
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 8 << 20;
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    shm::SharedWorld world(num_ranks);
    const auto make_world = [&](int rank, Queue& queue) {
      return world_over(std::make_unique<shm::ShmTransport>(world, rank), rank, num_ranks, world, queue);
    };
    run_ranks_on(num_ranks, world, make_world, body);
  }
};

struct OverTcp {
  static constexpr bool kBuffersSends = true;
  static constexpr int kPrograms = 20;
  static constexpr int64_t kMore = 16 << 20;  // more than the buffers of a connection on loopback
  static void run(int num_ranks, const std::function<void(Communicator&)>& body) {
    control::LocalStore store;
    OneFailureState failures;
    const auto make_world = [&](int rank, Queue& queue) {
      return make_tcp_world({.rank = rank, .size = num_ranks, .store = &store, .failures = &failures}, queue);
    };
    run_ranks_on(num_ranks, failures, make_world, body);
  }
};

using Transports = testing::Types<OverWire, OverSharedMemory, OverTcp>;

struct TransportNames {
  template <class Backend>
  static std::string GetName(int) {
    if (std::is_same_v<Backend, OverTcp>) return "tcp";
    return std::is_same_v<Backend, OverWire> ? "wire" : "shared_memory";
  }
};

INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Collectives, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Groups, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Programs, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, RankChannels, Transports, TransportNames);
INSTANTIATE_TYPED_TEST_SUITE_P(Transport, Failures, Transports, TransportNames);

}  // namespace
}  // namespace braid::comm::tests::transport_test
