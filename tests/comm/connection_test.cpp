// Connections without ranks: two to each other over Gloo on loopback, and one over memory whose peer is the test.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <thread>

#include "braid/base/clock.h"
#include "braid/comm/gloo/gloo_wire.h"
#include "braid/comm/transport/wire_transport.h"
#include "tests/comm/memory_wire.h"

namespace braid::comm::tests::connection_test {
namespace {

using transport::Connection;
using transport::Frame;
using transport::MessagePtr;

class IgnoringReceiver : public transport::Transport::Receiver {
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
      connection.send(Frame::Kind::Seen);
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

class ReceiverOfEnd final : public IgnoringReceiver {
 public:
  void ended(int) override { on_end(); }

  std::function<void()> on_end;
};

// A peer that is told so closes the connection, which is no failure only for a receiver that knows of the end.
TEST(MemoryConnection, the_last_frame_is_reported_as_seen_after_the_receiver_knows_of_it) {
  Medium medium(2);
  MemoryWire wire(medium, 0), peer(medium, 1);
  transport::WireTransport transport(0, 1);
  ReceiverOfEnd receiver;
  Connection connection(wire, 1, transport, receiver);
  receiver.on_end = [&] { connection.send(Frame::Kind::Seen); };
  connection.start();

  const Frame last{.kind = Frame::Kind::End};
  peer.send(&last, sizeof last, 0, 0)->wait();
  Frame beside, answer;
  peer.receive(&beside, sizeof beside, 0, 0)->wait();
  peer.receive(&answer, sizeof answer, 0, 0)->wait();
  EXPECT_EQ(beside.seen, 0);
  EXPECT_EQ(answer.seen, 1);
  wire.abort();
  connection.stop();
}

}  // namespace
}  // namespace braid::comm::tests::connection_test
