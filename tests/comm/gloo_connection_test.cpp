// Two lanes of one connection, of which each thinks it is alone: no post, no ranks.
#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "braid/base/clock.h"
#include "braid/comm/gloo/connection.h"

namespace braid::comm::tests::gloo_connection_test {
namespace {

class Nobody final : public comm::gloo::Connection::Receiver {
 public:
  void arrive(int, const comm::gloo::MessageHeader&, const std::byte*) override {}
  void refused(const comm::gloo::MessagePtr&) override {}
  void done(const comm::gloo::MessagePtr&) override {}
  void closed(int, const std::string&) override {}
};

struct Side {
  Side(int rank, control::KeyValueStore& store)
      : engine({.rank = rank, .size = 2, .listener = comm::gloo::Listener::at("127.0.0.1"), .store = &store}),
        lane(engine, 1 - rank, nobody) {
    lane.start();
  }
  ~Side() {
    engine.abort();
    lane.stop();
  }

  comm::gloo::Engine engine;
  Nobody nobody;
  comm::gloo::Connection lane;
};

// The other thread's message beside it stays unanswered for long.
TEST(GlooConnection, the_last_word_is_heard_whatever_is_sent_beside_it) {
  control::LocalStore store;
  std::unique_ptr<Side> sides[2];
  {
    std::jthread other([&] { sides[1] = std::make_unique<Side>(1, store); });
    sides[0] = std::make_unique<Side>(0, store);
  }
  comm::gloo::Connection& lane = sides[0]->lane;
  std::atomic<int> turn = 0, sent = 0;
  constexpr int kTurns = 200;
  std::jthread beside([&] {
    for (int next = 1; next <= kTurns; ++next) {
      while (turn < next) std::this_thread::yield();
      lane.send({.what = comm::gloo::MessageHeader::What::Seen});
      ++sent;
    }
  });
  for (int next = 1; next <= kTurns && !testing::Test::HasFailure(); ++next) {
    turn = next;
    lane.end();
    const double until = now_seconds() + 10;
    while (!lane.end_heard() && now_seconds() < until) std::this_thread::yield();
    EXPECT_TRUE(lane.end_heard()) << next;
    while (sent < next) std::this_thread::yield();
  }
  turn = kTurns;
}

}  // namespace
}  // namespace braid::comm::tests::gloo_connection_test
