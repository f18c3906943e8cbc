// Channels keep their promises: order, ownership, deadlines, and that the end of one endpoint is news, not a failure.
#include "braid/comm/channel.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <thread>

#include "braid/base/errors.h"
#include "braid/comm/local/channel_hub.h"
#include "tests/comm/values.h"
#include "tests/support/faulty_channel.h"

namespace braid::comm::tests::channel_test {
namespace {

using Kind = ChannelEvent::Kind;
constexpr int kTag = 3;

Channel::Time in(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<Channel::Time::duration>(std::chrono::duration<double>(seconds));
}

// A backend is a type with a constructor from the number of endpoints and endpoint(i).
template <class Hub>
class Channels : public testing::Test {};
TYPED_TEST_SUITE_P(Channels);

TYPED_TEST_P(Channels, EachTagIsAnOrderOfItsOwn) {
  TypeParam hub(2);
  const auto a = hub.endpoint(0), b = hub.endpoint(1);
  for (int64_t i = 0; i < 10; ++i) EXPECT_EQ(a->send(1, static_cast<int>(i % 2), {{i}, {}}), Delivery::Accepted);
  for (const int tag : {1, 0}) {
    for (int64_t i = tag; i < 10; i += 2) {
      const ChannelEvent event = b->recv_any(tag, Channel::kNoDeadline);
      ASSERT_EQ(event.kind, Kind::Received);
      EXPECT_EQ(event.peer, 0);
      EXPECT_EQ(event.message.header, std::vector<int64_t>{i});
    }
  }
}

TYPED_TEST_P(Channels, TensorsMoveAndAreNotCopied) {
  TypeParam hub(2);
  const auto a = hub.endpoint(0), b = hub.endpoint(1);
  at::Tensor tensor = empty<float>(1000);
  fill<float>(tensor, [](int64_t i) { return value<float>(1, 0, i); });
  const void* memory = tensor.const_data_ptr();
  ChannelMessage message{{7, 8}, {std::move(tensor)}};
  EXPECT_EQ(message.num_bytes(), 2 * 8 + 1000 * 4);
  a->send(1, kTag, std::move(message));
  const ChannelEvent event = b->recv_any(kTag, Channel::kNoDeadline);
  ASSERT_EQ(event.message.tensors.size(), 1u);
  EXPECT_EQ(event.message.tensors[0].const_data_ptr(), memory);
  EXPECT_EQ(event.message.tensors[0].use_count(), 1u);
  EXPECT_TRUE(holds<float>(event.message.tensors[0], [](int64_t i) { return value<float>(1, 0, i); }));
}

TYPED_TEST_P(Channels, ViewsAreRefused) {
  TypeParam hub(2);
  const auto a = hub.endpoint(0);
  EXPECT_THROW(a->send(1, kTag, {{}, {empty<float>(10).narrow(0, 0, 5)}}), InternalError);
}

TYPED_TEST_P(Channels, AnEndpointMayWriteToItself) {
  TypeParam hub(1);
  const auto a = hub.endpoint(0);
  a->send(0, kTag, {{5}, {}});
  EXPECT_EQ(a->recv_any(kTag, Channel::kNoDeadline).message.header, std::vector<int64_t>{5});
}

TYPED_TEST_P(Channels, NothingUntilTheDeadline) {
  TypeParam hub(2);
  const auto a = hub.endpoint(0), b = hub.endpoint(1);
  a->send(1, kTag + 1, {{1}, {}});
  const auto deadline = in(5e-3);
  EXPECT_EQ(b->recv_any(kTag, deadline).kind, Kind::TimedOut);
  EXPECT_GE(std::chrono::steady_clock::now(), deadline);
  EXPECT_EQ(b->recv_any(kTag + 1, in(0)).kind, Kind::Received);
}

TYPED_TEST_P(Channels, AClosedPeerIsToldOnceAfterItsMessages) {
  TypeParam hub(3);
  auto a = hub.endpoint(0), b = hub.endpoint(1);
  const auto c = hub.endpoint(2);
  a->send(2, kTag, {{1}, {}});
  a->send(2, kTag, {{2}, {}});
  a.reset();
  EXPECT_EQ(b->send(0, kTag, {{3}, {}}), Delivery::PeerClosed);
  b->send(2, kTag, {{4}, {}});
  std::vector<int64_t> values;
  for (int i = 0; i < 3; ++i) values.push_back(c->recv_any(kTag, in(60)).message.header.at(0));
  EXPECT_EQ(values, (std::vector<int64_t>{1, 2, 4}));
  ChannelEvent event = c->recv_any(kTag, in(60));
  EXPECT_EQ(event.kind, Kind::Closed);
  EXPECT_EQ(event.peer, 0);
  EXPECT_EQ(c->recv_any(kTag, in(0)).kind, Kind::TimedOut);
  event = c->recv_any(kTag + 1, in(60));  // another reader may look at another tag
  EXPECT_EQ(event.kind, Kind::Closed);
  EXPECT_EQ(event.peer, 0);
  EXPECT_EQ(b->send(2, kTag, {{5}, {}}), Delivery::Accepted);  // nobody else is touched
  EXPECT_EQ(c->recv_any(kTag, in(60)).peer, 1);
}

TYPED_TEST_P(Channels, ClosingWakesWhoeverWaits) {
  TypeParam hub(3);
  const auto a = hub.endpoint(0), b = hub.endpoint(1), c = hub.endpoint(2);
  std::jthread closer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    b->close();
    a->close();
  });
  std::jthread other([&] {
    std::set<int> closed;
    for (int i = 0; i < 2; ++i) closed.insert(c->recv_any(kTag, Channel::kNoDeadline).peer);
    EXPECT_EQ(closed, (std::set<int>{0, 1}));
  });
  for (int i = 0; i < 2; ++i) {
    ChannelEvent event;
    do event = a->recv_any(kTag, Channel::kNoDeadline);
    while (event.peer == 1);
    EXPECT_EQ(event.kind, Kind::Closed);
    EXPECT_EQ(event.peer, 0);
  }
}

TYPED_TEST_P(Channels, ManySendersLoseNothingAndKeepTheirOrder) {
  constexpr int kSenders = 4;
  const int64_t count = kTsan ? 300 : 3000;
  TypeParam hub(kSenders + 1);
  const auto sink = hub.endpoint(kSenders);
  std::vector<std::jthread> threads;
  for (int s = 0; s < kSenders; ++s) {
    threads.emplace_back([count, channel = hub.endpoint(s)] {
      for (int64_t i = 0; i < count; ++i) {
        at::Tensor tensor = empty<int64_t>(3);
        fill<int64_t>(tensor, [i](int64_t k) { return i + k; });
        channel->send(kSenders, kTag, {{i}, {std::move(tensor)}});
      }
    });
  }
  std::vector<int64_t> next(kSenders, 0);
  std::set<int> closed;
  while (closed.size() < kSenders) {
    const ChannelEvent event = sink->recv_any(kTag, Channel::kNoDeadline);
    if (event.kind == Kind::Closed) {
      EXPECT_TRUE(closed.insert(event.peer).second);
      continue;
    }
    const int64_t i = event.message.header.at(0);
    ASSERT_EQ(i, next[static_cast<size_t>(event.peer)]++);
    ASSERT_TRUE(holds<int64_t>(event.message.tensors.at(0), [i](int64_t k) { return i + k; }));
  }
  EXPECT_EQ(next, std::vector<int64_t>(kSenders, count));
}

REGISTER_TYPED_TEST_SUITE_P(Channels, EachTagIsAnOrderOfItsOwn, TensorsMoveAndAreNotCopied, ViewsAreRefused,
                            AnEndpointMayWriteToItself, NothingUntilTheDeadline, AClosedPeerIsToldOnceAfterItsMessages,
                            ClosingWakesWhoeverWaits, ManySendersLoseNothingAndKeepTheirOrder);
INSTANTIATE_TYPED_TEST_SUITE_P(Local, Channels, comm::local::ChannelHub);

TEST(ChannelHub, GivesEachEndpointOnce) {
  comm::local::ChannelHub hub(2);
  const auto a = hub.endpoint(0);
  EXPECT_THROW(hub.endpoint(0), InternalError);
  EXPECT_THROW(hub.endpoint(2), InternalError);
  EXPECT_THROW(a->send(2, kTag, {}), InternalError);
}

TEST(ChannelHub, AnEndpointThatNobodyTookClosesWithTheHub) {
  auto hub = std::make_unique<comm::local::ChannelHub>(2);
  const auto a = hub->endpoint(0);
  EXPECT_EQ(a->recv_any(kTag, in(0)).kind, Kind::TimedOut);
  hub.reset();
  EXPECT_EQ(a->recv_any(kTag, in(60)).peer, 1);
}

// The transport that other tests rely on does everything it is asked to.
TEST(FaultyChannel, RepeatsReordersCutsAndDrops) {
  comm::local::ChannelHub hub(2);
  const auto b = hub.endpoint(1);
  auto a = std::make_unique<FaultyChannel>(hub.endpoint(0), ChannelFaults{0.3, 0.2, 0.1, 0.1}, 1);
  constexpr int64_t kCount = 500;
  for (int64_t i = 0; i < kCount; ++i) a->send(1, kTag, {{i, i}, {}});
  for (int i = 0; i < 40; ++i) a->recv_any(kTag, in(0));
  std::map<int64_t, int> seen;
  int backwards = 0, cut = 0;
  int64_t last = -1;
  for (ChannelEvent event; (event = b->recv_any(kTag, in(0))).kind == Kind::Received;) {
    if (event.message.header.size() < 2) {
      ++cut;
      continue;
    }
    const int64_t i = event.message.header[0];
    backwards += i < last;
    last = i;
    ++seen[i];
  }
  const auto twice = std::count_if(seen.begin(), seen.end(), [](const auto& one) { return one.second == 2; });
  EXPECT_GT(backwards, 20);
  EXPECT_GT(cut, 20);
  EXPECT_GT(twice, 40);
  EXPECT_LT(seen.size(), static_cast<size_t>(kCount - 20));
}

}  // namespace
}  // namespace braid::comm::tests::channel_test
