// Two connections to each other, over Gloo on loopback, without ranks.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "braid/base/clock.h"
#include "braid/comm/gloo/gloo_wire.h"
#include "braid/comm/transport/wire_transport.h"

namespace braid::comm::tests::connection_test {
namespace {

using transport::Connection;
using transport::MessagePtr;

class IgnoringReceiver final : public transport::Transport::Receiver {
 public:
  std::shared_ptr<transport::Arrival> arrive(int, const transport::MessageHeader&, int32_t) override { return nullptr; }
  void arrived(transport::Arrival&) override {}
  void fetched(const MessagePtr&) override {}
  void sent(const MessagePtr&) override {}
  void refused(const MessagePtr&) override {}
  void left(int) override {}
  void ended(int) override {}
  void closed(int, const std::string&) override {}
};

struct Side {
  Side(int rank, control::KeyValueStore& store)
      : wire({.rank = rank, .size = 2, .listener = gloo::Listener::at("127.0.0.1"), .store = &store}),
        transport(rank, 1),
        connection(wire, 1 - rank, transport, receiver) {
    connection.start();
  }
  ~Side() {
    wire.abort();
    connection.stop();
  }

  gloo::GlooWire wire;
  transport::WireTransport transport;
  IgnoringReceiver receiver;
  Connection connection;
};

// A frame of another thread beside it is not answered for long.
TEST(GlooConnection, the_last_frame_is_reported_as_seen_whatever_is_sent_beside_it) {
  control::LocalStore store;
  std::unique_ptr<Side> sides[2];
  {
    std::jthread other([&] { sides[1] = std::make_unique<Side>(1, store); });
    sides[0] = std::make_unique<Side>(0, store);
  }
  Connection& connection = sides[0]->connection;
  std::atomic<int> turn = 0, sent = 0;
  constexpr int kTurns = 200;
  std::jthread beside([&] {
    for (int next = 1; next <= kTurns; ++next) {
      while (turn < next) std::this_thread::yield();
      connection.send(transport::Frame::Kind::Seen);
      ++sent;
    }
  });
  for (int next = 1; next <= kTurns && !testing::Test::HasFailure(); ++next) {
    turn = next;
    connection.end();
    const double until = now_seconds() + 10;
    while (!connection.end_seen() && now_seconds() < until) std::this_thread::yield();
    EXPECT_TRUE(connection.end_seen()) << next;
    while (sent < next) std::this_thread::yield();
  }
  turn = kTurns;
}

}  // namespace
}  // namespace braid::comm::tests::connection_test
