// Two lanes of one connection, of which each thinks it is alone: no post, no ranks.
#include "braid/comm/gloo/gloo_lane.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <memory>
#include <thread>

#include "braid/base/clock.h"

namespace braid::comm_tests::gloo_lane_test {
namespace {

class Nobody final : public GlooLane::Receiver {
 public:
  void arrive(int, const GlooHeader&, const std::byte*) override {}
  void refused(const GlooParcelPtr&) override {}
  void done(const GlooParcelPtr&) override {}
  void closed(int, const std::string&) override {}
};

struct Side {
  Side(int rank, control::KeyValueStore& store)
      : engine({.rank = rank, .size = 2, .listener = GlooListener::at("127.0.0.1"), .store = &store}),
        lane(engine, 1 - rank, nobody) {
    lane.start();
  }
  ~Side() {
    engine.abort();
    lane.stop();
  }

  GlooEngine engine;
  Nobody nobody;
  GlooLane lane;
};

// What is sent beside it, by the thread that hears the peer's, is not answered for long.
TEST(GlooLane, the_last_word_is_heard_whatever_is_sent_beside_it) {
  control::LocalStore store;
  std::unique_ptr<Side> sides[2];
  {
    std::jthread other([&] { sides[1] = std::make_unique<Side>(1, store); });
    sides[0] = std::make_unique<Side>(0, store);
  }
  GlooLane& lane = sides[0]->lane;
  std::atomic<int> turn = 0, sent = 0;
  constexpr int kTurns = 200;
  std::jthread beside([&] {
    for (int next = 1; next <= kTurns; ++next) {
      while (turn < next) std::this_thread::yield();
      lane.send({.what = GlooHeader::What::Seen});
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
}  // namespace braid::comm_tests::gloo_lane_test
