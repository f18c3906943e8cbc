// Ranks that are threads own objects together, and what waits outside of the communicator ends with the world.
#include "braid/comm/rank_channel.h"

#include <gtest/gtest.h>

#include <latch>

#include "braid/base/errors.h"
#include "braid/comm/local/channel_hub.h"
#include "braid/comm/local/run_ranks.h"
#include "braid/comm/thread_ranks.h"

namespace braid::comm::tests::rank_channel_test {
namespace {

constexpr int kTag = 3;

TEST(ThreadRanks, all_own_the_roots_object) {
  std::weak_ptr<int> seen;
  run_ranks(4, [&](Communicator& world) {
    const auto own = world.rank() == 2 ? std::make_shared<int>(42) : nullptr;
    if (own) seen = own;
    const auto all = shared(*world.thread_ranks(), own, 2);
    EXPECT_EQ(*all, 42);
    const auto half = world.split(world.rank() % 2, 0, "half");
    const auto of_half = shared(*half->thread_ranks(), std::make_shared<int>(world.rank()), 1);
    EXPECT_EQ(*of_half, 2 + world.rank() % 2);
  });
  EXPECT_TRUE(seen.expired());
}

TEST(ThreadRanks, a_rank_that_disagrees_about_the_root_is_refused) {
  EXPECT_THROW(run_ranks(2, [](Communicator& world) { world.thread_ranks()->share(nullptr, world.rank()); }),
               CommError);
}

TEST(ThreadRanks, hear_of_the_first_failure_once_and_at_once) {
  std::vector<std::string> before, after, never;
  EXPECT_THROW(run_ranks(1,
                         [&](Communicator& world) {
                           ThreadRanks& ranks = *world.thread_ranks();
                           const auto note = [](std::vector<std::string>& to) {
                             return [&to](const Failure& failure) { to.push_back(failure.why); };
                           };
                           const auto early = ranks.on_failure(note(before));
                           ranks.on_failure(note(never)).reset();
                           world.abort("first");
                           world.abort("second");
                           const auto late = ranks.on_failure(note(after));
                         }),
               CommError);
  EXPECT_EQ(before, std::vector<std::string>{"first"});
  EXPECT_EQ(after, std::vector<std::string>{"first"});
  EXPECT_TRUE(never.empty());
}

TEST(RankChannel, a_wait_ends_when_another_rank_fails) {
  comm::local::ChannelHub hub(2);
  const auto silent = hub.endpoint(1);
  std::latch taken(1);
  std::string heard;
  const auto body = [&](Communicator& world) {
    if (world.rank() == 1) {
      taken.wait();
      throw RunError("out of paper");
    }
    RankChannel channel(hub.endpoint(0), world);
    taken.count_down();
    try {
      channel.recv_any(kTag, Channel::kNoDeadline);
    } catch (const CommError& error) {
      heard = error.failure().why;
      EXPECT_EQ(error.failure().rank, 1);
      throw;
    }
  };
  EXPECT_THROW(run_ranks(2, body), RunError);
  EXPECT_EQ(heard, "out of paper");
  EXPECT_EQ(silent->recv_any(kTag, Channel::kNoDeadline).kind, ChannelEvent::Kind::Closed);
}

// The peer is told by the closed channel, and the world has failed by then.
TEST(RankChannel, left_by_an_exception_fails_the_world_before_peers_hear_of_it) {
  comm::local::ChannelHub hub(2);
  EXPECT_THROW(run_ranks(2,
                         [&](Communicator& world) {
                           if (world.rank() == 0) {
                             const RankChannel channel(hub.endpoint(0), world);
                             throw RunError("out of paper");
                           }
                           const auto peer = hub.endpoint(1);
                           EXPECT_EQ(peer->recv_any(kTag, Channel::kNoDeadline).peer, 0);
                           try {
                             world.barrier().wait_host();
                           } catch (const CommError& error) {
                             EXPECT_EQ(error.failure().rank, 0);
                           }
                         }),
               RunError);
}

TEST(RankChannel, is_an_ordinary_channel_otherwise) {
  comm::local::ChannelHub hub(2);
  run_ranks(2, [&](Communicator& world) {
    RankChannel channel(hub.endpoint(world.rank()), world);
    EXPECT_EQ(channel.send(1 - world.rank(), kTag, {{world.rank()}, {}}), Delivery::Accepted);
    const ChannelEvent event = channel.recv_any(kTag, Channel::kNoDeadline);
    EXPECT_EQ(event.peer, 1 - world.rank());
    EXPECT_EQ(event.message.header, std::vector<int64_t>{1 - world.rank()});
    channel.close();
    EXPECT_EQ(channel.recv_any(kTag, Channel::kNoDeadline).kind, ChannelEvent::Kind::Closed);
  });
}

}  // namespace
}  // namespace braid::comm::tests::rank_channel_test
