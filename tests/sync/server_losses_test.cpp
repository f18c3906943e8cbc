// Workers that are late, leave, fall silent or are lost, and what the others make of it.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <latch>
#include <map>
#include <memory>

#include "braid/base/errors.h"
#include "tests/support/faulty_channel.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_losses_test {
namespace {

constexpr double kDeadline = 120;  // seconds; a deadlock ends the test with an error
constexpr int64_t kElements = 50, kClocks = 8;

// Workers that stop being heard of, and what the others make of it.
class Losses : public testing::Test {
 protected:
  static constexpr int kWorkers = 3;
  const KeyShape shape_{at::kDouble, kElements, {}};
  const optim::ElementRule rule_{};
  ServerOptions options_{.num_workers = kWorkers};
  std::unique_ptr<LocalServers> servers_;
  std::map<int, std::vector<int64_t>> pushed_;  // clocks, by worker

  void start(Consistency consistency, OnRankFailure on_loss, int num_servers = 2) {
    options_.consistency = consistency;
    options_.on_loss = on_loss;
    servers_ = std::make_unique<LocalServers>(
        shape_, LocalServersOptions{.num_servers = num_servers, .rule = rule_, .server = options_});
    for (int worker = 0; worker < options_.num_workers; ++worker) pushed_[worker];
  }
  ServerClient client(Channel& channel) const {
    return {servers_->shares(),
            rule_,
            {.consistency = options_.consistency, .staleness = options_.staleness, .deadline_seconds = kDeadline},
            channel};
  }
  void step(ServerClient& client, int worker) {
    KeyedTensors read{at::empty({kElements}, at::kDouble), {}};
    client.pull(read);
    pushed_.at(worker).push_back(client.clock());
    client.push(gradient(shape_, worker, client.clock()), 0.1);
  }
  // A worker that ends without leaving.
  void step_and_be_lost(int worker, int num_steps) {
    const auto channel = servers_->worker_channel(worker);
    ServerClient own = client(*channel);
    for (int i = 0; i < num_steps; ++i) step(own, worker);
  }
  // A worker that stays to the end; the parameters it then sees.
  std::vector<double> stay(int worker) {
    const auto channel = servers_->worker_channel(worker);
    ServerClient own = client(*channel);
    while (own.clock() < kClocks) step(own, worker);
    KeyedTensors read{at::empty({kElements}, at::kDouble), {}};
    own.pull(read);
    own.leave();
    return doubles(read.dense);
  }
  // Each clock's mean over those who pushed at it.
  std::vector<double> expected() const {
    std::vector<double> weight(kElements);
    for (int64_t clock = 0; clock < kClocks; ++clock) {
      std::vector<double> sum(kElements);
      double count = 0;
      for (const auto& [worker, clocks] : pushed_) {
        if (std::find(clocks.begin(), clocks.end(), clock) == clocks.end()) continue;
        const auto own = doubles(gradient(shape_, worker, clock).dense);
        for (size_t i = 0; i < sum.size(); ++i) sum[i] += own[i];
        ++count;
      }
      for (size_t i = 0; i < sum.size(); ++i) weight[i] -= 0.1 * sum[i] / count;
    }
    return weight;
  }
  void expect_mean(const std::vector<double>& got) const {
    const auto mean = expected();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], mean[i], 1e-13) << i;
  }
  static std::string reason(const std::function<void()>& call) {
    try {
      call();
    } catch (const CommError& error) {
      return error.failure().why;
    }
    return "";
  }
};

TEST_F(Losses, BspFailsForAllWhenAWorkerIsLost) {
  start(Consistency::Bsp, OnRankFailure::Fail);
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      EXPECT_EQ(reason([&] { stay(worker); }), "worker 1 is lost");
      return;
    }
    step_and_be_lost(1, 2);
  });
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.lost.at(0), 1);
}

TEST_F(Losses, BspGoesOnWithoutALostWorkerByPolicy) {
  start(Consistency::Bsp, OnRankFailure::Continue);
  std::vector<double> seen[kWorkers];
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      seen[worker] = stay(worker);
      return;
    }
    step_and_be_lost(1, 2);
  });
  EXPECT_EQ(seen[0], seen[2]);
  expect_mean(seen[0]);
}

// The last push of a worker arrives without its end: as if it had never been made.
TEST_F(Losses, APushThatIsCutOffChangesNothing) {
  start(Consistency::Bsp, OnRankFailure::Continue);
  std::vector<double> seen[kWorkers];
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      seen[worker] = stay(worker);
      return;
    }
    FaultyChannel channel(servers_->worker_channel(1), {}, 1);
    ServerClient own = client(channel);
    for (int i = 0; i < 3; ++i) {
      if (i == 2) channel.set_faults({.cut = 1});
      KeyedTensors read{at::empty({kElements}, at::kDouble), {}};
      if (i < 2) own.pull(read);
      if (i < 2) pushed_.at(1).push_back(i);
      own.push(gradient(shape_, 1, i), 0.1);
    }
  });
  expect_mean(seen[0]);
  int64_t damaged = 0;
  for (const auto& report : servers_->finish()) damaged += report.num_damaged;
  EXPECT_GT(damaged, 0);
}

TEST_F(Losses, BspWaitsForASilentWorkerUntilTheDeadline) {
  for (const OnRankFailure on_loss : {OnRankFailure::Fail, OnRankFailure::Continue}) {
    options_.deadline_seconds = 20e-3;
    options_.num_workers = 2;
    pushed_.clear();
    start(Consistency::Bsp, on_loss);
    std::latch pushed(1), ended(1);
    on_workers(2, [&](int worker) {
      if (worker == 0) {
        pushed.wait();
        EXPECT_EQ(reason([&] { stay(0); }), on_loss == OnRankFailure::Fail ? "worker 1 is lost" : "");
        ended.count_down();
        return;
      }
      const auto channel = servers_->worker_channel(1);
      ServerClient own = client(*channel);
      step(own, 1);
      pushed.count_down();
      ended.wait();
      EXPECT_NE(reason([&] { step(own, 1); }), "");
    });
    for (const auto& report : servers_->finish()) EXPECT_EQ(report.lost.at(0), 1);
  }
}

TEST_F(Losses, ALeaverIsNotMissed) {
  start(Consistency::Bsp, OnRankFailure::Fail);
  std::vector<double> seen;
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      const auto own = stay(worker);
      if (worker == 0) seen = own;
      return;
    }
    const auto channel = servers_->worker_channel(1);
    ServerClient own = client(*channel);
    for (int i = 0; i < 3; ++i) step(own, 1);
    own.leave();
  });
  expect_mean(seen);
  EXPECT_TRUE(servers_->finish()[0].lost.empty());
}

TEST_F(Losses, ALatecomerStartsAtTheSlowestClock) {
  options_.num_initial = 2;
  start(Consistency::Bsp, OnRankFailure::Fail);
  std::latch at_four(1), joined(1);
  std::vector<double> seen;
  on_workers(kWorkers, [&](int worker) {
    if (worker == 1) {
      seen = stay(worker);
      return;
    }
    if (worker == 2) at_four.wait();
    const auto channel = servers_->worker_channel(worker);
    ServerClient own = client(*channel);
    if (worker == 2) joined.count_down();
    while (own.clock() < kClocks) {
      step(own, worker);
      if (worker == 0 && own.clock() == 4) {
        at_four.count_down();
        joined.wait();
      }
    }
    own.leave();
  });
  ASSERT_FALSE(pushed_.at(2).empty());
  EXPECT_GE(pushed_.at(2).front(), 3);
  EXPECT_LE(pushed_.at(2).front(), 4);
  expect_mean(seen);
}

TEST_F(Losses, AWorkerThatComesBackStartsAnew) {
  start(Consistency::Bsp, OnRankFailure::Continue);
  std::vector<double> seen[kWorkers];
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      seen[worker] = stay(worker);
      return;
    }
    const auto channel = servers_->worker_channel(1);
    {
      ServerClient first = client(*channel);
      for (int i = 0; i < 2; ++i) step(first, 1);
    }
    ServerClient second = client(*channel);
    EXPECT_GE(second.clock(), 1);
    while (second.clock() < kClocks) step(second, 1);
    second.leave();
  });
  EXPECT_EQ(seen[0], seen[2]);
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.lost, std::vector<int>{1});
}

// The slowest is lost: the others, which it held up, go on.
TEST_F(Losses, SspTakesALostWorkerOutOfTheMinimum) {
  options_.staleness = 2;
  start(Consistency::Ssp, OnRankFailure::Fail);
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      stay(worker);
      return;
    }
    step_and_be_lost(1, 1);
  });
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.num_updates, 2 * kClocks + 1);
}

TEST_F(Losses, AspGoesOn) {
  start(Consistency::Asp, OnRankFailure::Fail);
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      stay(worker);
      return;
    }
    servers_->worker_channel(1);  // never says a word
  });
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.num_updates, 2 * kClocks);
}

TEST_F(Losses, AServerThatEndsIsAnErrorOfItsWorkers) {
  start(Consistency::Asp, OnRankFailure::Fail, 1);
  const auto channel = servers_->worker_channel(0);
  ServerClient own = client(*channel);
  step(own, 0);
  servers_.reset();
  KeyedTensors read{at::empty({kElements}, at::kDouble), {}};
  EXPECT_EQ(reason([&] { own.pull(read); }), "server 0 has closed its channel");
  EXPECT_EQ(reason([&] { own.pull(read); }), "server 0 has closed its channel");  // and is not waited for
}

}  // namespace
}  // namespace braid::sync::server::tests::server_losses_test
