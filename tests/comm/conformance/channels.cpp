// The guarantees of channels between the ranks of a world.
#include <cstring>
#include <thread>

#include "braid/base/errors.h"
#include "tests/comm/conformance.h"
#include "tests/comm/values.h"

namespace braid::comm::tests::channels {
namespace {

// Message `number` from one endpoint to another: of any size, with tensors of several types and numbers of dimensions.
struct SampleMessage {
  int from, to, number;

  ChannelMessage made() const {
    ChannelMessage message{{from, number}, {}};
    message.header.resize(static_cast<size_t>(2 + number % 3), -number);
    for (int i = 0; i < number % 4; ++i) {
      const at::Tensor tensor = i % 2 == 0 ? empty<float>(count(i)) : empty<double>(count(i));
      if (i % 2 == 0) fill<float>(tensor, [&](int64_t at) { return value<float>(number, from, at); });
      if (i % 2 == 1) fill<double>(tensor, [&](int64_t at) { return value<double>(number, to, at); });
      message.tensors.push_back(tensor);
    }
    if (number % 5 == 0) message.tensors.push_back(at::ones({3, 2}, at::kLong));
    return message;
  }
  int64_t count(int tensor) const {
    constexpr int64_t kCounts[] = {0, 1, 1000, 20000, 300000};
    return kCounts[(number + tensor + from) % 5];
  }
  void expect(const ChannelEvent& event) const {
    const ChannelMessage wanted = made();
    EXPECT_EQ(event.kind, ChannelEvent::Kind::Received);
    EXPECT_EQ(event.peer, from);
    EXPECT_EQ(event.message.header, wanted.header);
    ASSERT_EQ(event.message.tensors.size(), wanted.tensors.size());
    for (size_t i = 0; i < wanted.tensors.size(); ++i) {
      const at::Tensor &got = event.message.tensors[i], &want = wanted.tensors[i];
      EXPECT_EQ(got.scalar_type(), want.scalar_type());
      EXPECT_EQ(got.sizes(), want.sizes());
      EXPECT_TRUE(want.nbytes() == 0 || std::memcmp(got.const_data_ptr(), want.const_data_ptr(), want.nbytes()) == 0);
    }
  }
};

// Endpoints 0, 1, ... of the ranks in turn, two of each rank.
std::vector<int> two_each(const Communicator& world) { return {world.rank(), world.size() + world.rank()}; }

TEST_P(RankChannels, messages_of_one_sender_and_tag_arrive_in_order_and_whole) {
  GetParam().run(3, [](Communicator& world) {
    const int num_endpoints = 2 * world.size(), num_messages = 12;
    const auto channels = world.make_channels(two_each(world), num_endpoints);
    for (int number = 0; number < num_messages; ++number) {
      for (const auto& channel : channels) {
        for (int to = 0; to < num_endpoints; ++to) {
          const SampleMessage sample{channel->endpoint(), to, number};
          EXPECT_EQ(channel->send(to, number % 2, sample.made()), Delivery::Accepted);
        }
      }
    }
    for (const auto& channel : channels) {
      for (const int tag : {1, 0}) {
        std::vector<int> next(static_cast<size_t>(num_endpoints), tag);
        for (int message = 0; message < num_endpoints * num_messages / 2; ++message) {
          const ChannelEvent event = channel->recv_any(tag, Channel::kNoDeadline);
          ASSERT_EQ(event.kind, ChannelEvent::Kind::Received);
          int& number = next[static_cast<size_t>(event.peer)];
          SampleMessage{event.peer, channel->endpoint(), number}.expect(event);
          number += 2;
        }
      }
    }
    world.barrier().wait_host();
  });
}

TEST_P(RankChannels, an_end_is_an_event_after_all_messages) {
  GetParam().run(2, [](Communicator& world) {
    const auto channels = world.make_channels(two_each(world), 5);  // nobody has the last one
    EXPECT_EQ(channels[0]->recv_any(1, Channel::kNoDeadline).peer, 4);
    EXPECT_EQ(channels[0]->send(4, 1, {}), Delivery::PeerClosed);
    world.barrier().wait_host();
    if (world.rank() == 1) {
      channels[0]->send(0, 1, SampleMessage{1, 0, 3}.made());
      channels[0]->close();
      EXPECT_EQ(channels[0]->recv_any(1, Channel::kNoDeadline).peer, 1);
    } else {
      SampleMessage{1, 0, 3}.expect(channels[0]->recv_any(1, Channel::kNoDeadline));
      const ChannelEvent end = channels[0]->recv_any(1, Channel::kNoDeadline);
      EXPECT_EQ(end.kind, ChannelEvent::Kind::Closed);
      EXPECT_EQ(end.peer, 1);
      EXPECT_EQ(channels[0]->send(1, 1, {}), Delivery::PeerClosed);
      EXPECT_EQ(channels[0]->recv_any(1, std::chrono::steady_clock::now()).kind, ChannelEvent::Kind::TimedOut);
      EXPECT_EQ(channels[0]->recv_any(2, Channel::kNoDeadline).peer, 1);  // once for each tag
    }
    world.barrier().wait_host();
  });
}

// A server on a thread of its own, while the ranks use collectives too.
TEST_P(RankChannels, a_thread_of_a_rank_answers_all) {
  GetParam().run(3, [](Communicator& world) {
    constexpr int kRounds = 20, kServer = 3;
    std::vector<int> numbers{world.rank()};
    if (world.rank() == 0) numbers.push_back(kServer);
    const auto channels = world.make_channels(numbers, kServer + 1);
    std::jthread server;
    if (world.rank() == 0) {
      server = std::jthread([&] {
        for (int request = 0; request < kRounds * 3; ++request) {
          ChannelEvent event = channels[1]->recv_any(0, Channel::kNoDeadline);
          channels[1]->send(event.peer, 1, std::move(event.message));
        }
      });
    }
    for (int round = 0; round < kRounds; ++round) {
      channels[0]->send(kServer, 0, SampleMessage{world.rank(), kServer, round}.made());
      const ChannelEvent event = channels[0]->recv_any(1, Channel::kNoDeadline);
      EXPECT_EQ(event.peer, kServer);
      EXPECT_EQ(event.message.header[1], round);
      world.barrier().wait_host();
    }
  });
}

TEST_P(RankChannels, a_wait_ends_when_another_rank_fails) {
  EXPECT_THROW(GetParam().run(2,
                              [](Communicator& world) {
                                const auto channels = world.make_channels({world.rank()}, 2);
                                if (world.rank() == 1) world.abort("out of paper");
                                EXPECT_THROW(channels[0]->recv_any(0, Channel::kNoDeadline), CommError);
                                channels[0]->recv_any(0, Channel::kNoDeadline);
                              }),
               CommError);
}

// The endpoints of the rank that throws close too, but the world has failed by then.
TEST_P(RankChannels, a_wait_ends_when_another_rank_throws) {
  EXPECT_THROW(GetParam().run(2,
                              [](Communicator& world) {
                                const auto channels = world.make_channels({world.rank()}, 2);
                                if (world.rank() == 1) throw RunError("out of paper");
                                EXPECT_THROW(channels[0]->recv_any(0, Channel::kNoDeadline), CommError);
                              }),
               RunError);
}

}  // namespace
}  // namespace braid::comm::tests::channels
