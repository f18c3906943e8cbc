// A server that fails: its workers hear why, at every call from then on.
#include <gtest/gtest.h>

#include <functional>
#include <latch>
#include <memory>
#include <string>

#include "braid/base/errors.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_failure_test {
namespace {

constexpr int kWorkers = 3;
constexpr int64_t kNumElements = 50;

// A server's end of the hub that fails when the second push comes.
class FailingChannel final : public Channel {
 public:
  explicit FailingChannel(std::unique_ptr<Channel> inner) : inner_(std::move(inner)) {}
  int endpoint() const override { return inner_->endpoint(); }
  int num_endpoints() const override { return inner_->num_endpoints(); }
  void close() override { inner_->close(); }
  Delivery send(int peer, int tag, ChannelMessage message) override {
    return inner_->send(peer, tag, std::move(message));
  }
  ChannelEvent recv_any(int tag, Time deadline) override {
    ChannelEvent event = inner_->recv_any(tag, deadline);
    if (const auto fields = envelope_of(event.message); fields && fields->request() == RequestKind::Push) ++pushes_;
    if (pushes_ == 2) throw RunError("the server is out of paper");
    return event;
  }

 private:
  const std::unique_ptr<Channel> inner_;
  int pushes_ = 0;
};

TEST(ServerFailure, WhatAServerThrowsIsWhatItsWorkersThrow) {
  const KeyShape shape{at::kDouble, kNumElements, {}};
  const optim::ElementRule rule{};
  for (const Consistency consistency : {Consistency::Bsp, Consistency::Ssp, Consistency::Asp}) {
    const ServerOptions options{.consistency = consistency, .num_workers = kWorkers};
    const auto wrap = [](std::unique_ptr<Channel> channel) -> std::unique_ptr<Channel> {
      if (channel->endpoint() == 0) return channel;
      return std::make_unique<FailingChannel>(std::move(channel));
    };
    LocalServers servers(shape, {.num_servers = 2, .rule = rule, .server = options, .wrap = wrap});
    std::latch joined(kWorkers);
    on_workers(kWorkers, [&](int worker) {
      const auto channel = servers.worker_channel(worker);
      ServerClient own(servers.shares(), rule, {.consistency = consistency}, *channel);
      joined.arrive_and_wait();
      const auto what_of = [&](const std::function<void()>& call) {
        try {
          call();
        } catch (const RunError& error) {
          return std::string(error.what());
        }
        return std::string("nothing");
      };
      KeyedTensors read{at::empty({kNumElements}, at::kDouble), {}};
      const auto steps = [&] {
        for (int step = 0; step < 3; ++step) {
          own.push(gradient(shape, worker, step), 0.1);
          own.pull(read);
        }
      };
      EXPECT_EQ(what_of(steps), "the server is out of paper");
      EXPECT_EQ(what_of([&] { own.pull(read); }), "the server is out of paper");
      EXPECT_EQ(what_of([&] { own.leave(); }), "the server is out of paper");
    });
    EXPECT_THROW(servers.finish(), RunError);
  }
}

}  // namespace
}  // namespace braid::sync::server::tests::server_failure_test
