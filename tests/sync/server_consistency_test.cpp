// Who waits for whom: bounds on staleness under random delays, workers that are late, leave, fall silent or are lost.
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <limits>
#include <map>

#include "braid/base/errors.h"
#include "tests/support/faulty_channel.h"
#include "tests/sync/server_world.h"

namespace braid::server_tests {
namespace {

constexpr int64_t kGone = std::numeric_limits<int64_t>::max();
constexpr double kDeadline = 120;  // seconds; a deadlock ends the test with an error

// Workers that do nothing but wait a random while; a seed decides everything but the scheduling.
class NullRun {
 public:
  NullRun(Consistency consistency, uint64_t seed)
      : consistency_(consistency), seed_(seed), clocks_(static_cast<size_t>(num_workers_)) {
    if (late_) clocks_.back() = kGone;
    LocalServersOptions options{.num_servers = 1 + static_cast<int>(draw(3) % 2)};
    options.server = {.consistency = consistency,
                      .staleness = staleness,
                      .num_workers = num_workers_,
                      .num_initial = num_workers_ - late_};
    LocalServers servers({at::kFloat, 8, {}}, options);
    on_workers(num_workers_, [&](int worker) { work(worker, servers); });
    servers.finish();
  }

  int64_t furthest() const { return furthest_; }

 private:
  uint64_t draw(uint64_t what) const { return random_bits(stream_key(seed_, "run"), what); }

 public:
  const int64_t staleness = static_cast<int64_t>(draw(1) % 4);

 private:
  void work(int worker, LocalServers& servers) {
    const bool is_late = late_ && worker == num_workers_ - 1;
    const uint64_t delays = stream_key(seed_, std::to_string(worker));
    if (is_late) pause(delays, 1000, 5);
    const auto channel = servers.worker_channel(worker);
    ServerClient client(servers.shares(), servers.rule(),
                        {.consistency = consistency_,
                         .staleness = staleness,
                         .pull_every = 1 + static_cast<int>(draw(6) % 3),
                         .deadline_seconds = kDeadline},
                        *channel);
    std::atomic<int64_t>& own = clocks_[static_cast<size_t>(worker)];
    own = client.clock();
    const KeyedTensors push = gradient({at::kFloat, 8, {}}, worker, 0);
    KeyedTensors read{at::empty({8}, at::kFloat), {}};
    const int64_t steps = worker == 0 && draw(7) % 3 == 0 ? 3 : 7;  // some leave early
    for (int64_t step = 0; step < steps; ++step) {
      client.pull(read);
      for (const auto& other : clocks_) record(client.clock(), other);
      pause(delays, static_cast<uint64_t>(step), worker == 1 ? 3 : 1);
      ++own;
      client.push(push, 0);
    }
    own = kGone;
    client.leave();
  }

  void record(int64_t clock, int64_t other) {
    if (other == kGone) return;
    int64_t known = furthest_;
    while (clock - other > known && !furthest_.compare_exchange_weak(known, clock - other)) {
    }
  }

  // Mostly not at all.
  static void pause(uint64_t key, uint64_t number, int times) {
    const double part = uniform(key, number);
    if (part > 0.7) std::this_thread::sleep_for(std::chrono::microseconds(static_cast<int>(40 * part * times)));
  }

  const Consistency consistency_;
  const uint64_t seed_;
  const int num_workers_ = 2 + static_cast<int>(draw(2) % 4);
  const int late_ = draw(5) % 3 == 0 ? 1 : 0;
  std::vector<std::atomic<int64_t>> clocks_;  // as the workers know them: never behind the servers' view
  std::atomic<int64_t> furthest_ = 0;
};

TEST(SspServer, NobodyIsEverFurtherAheadThanTheBoundAndNobodyHangs) {
  const uint64_t count = kTsan ? 100 : 1000;
  std::map<int64_t, int64_t> reached;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const NullRun run(Consistency::Ssp, seed);
    ASSERT_LE(run.furthest(), run.staleness) << "seed " << seed;
    reached[run.staleness] = std::max(reached[run.staleness], run.furthest());
  }
  for (int64_t staleness = 0; staleness < 4; ++staleness) EXPECT_EQ(reached[staleness], staleness);
}

TEST(BspServer, NobodyIsAhead) {
  for (uint64_t seed = 0; seed < (kTsan ? 20 : 100); ++seed) {
    ASSERT_EQ(NullRun(Consistency::Bsp, seed).furthest(), 0) << "seed " << seed;
  }
}

TEST(AspServer, NobodyWaits) {
  int64_t furthest = 0;
  for (uint64_t seed = 0; seed < (kTsan ? 20 : 100); ++seed) {
    furthest = std::max(furthest, NullRun(Consistency::Asp, seed).furthest());
  }
  EXPECT_GT(furthest, 3);
}

constexpr int64_t kElements = 50, kClocks = 8;

// Workers that stop being heard of, and what the others make of it.
class Losses : public testing::Test {
 protected:
  static constexpr int kWorkers = 3;
  const KeyShape shape_{at::kDouble, kElements, {}};
  const ServerRule rule_{};
  ServerOptions options_{.num_workers = kWorkers};
  std::unique_ptr<LocalServers> servers_;
  std::map<int, std::vector<int64_t>> pushed_;  // clocks, by worker

  void start(Consistency consistency, OnLoss on_loss, int num_servers = 2) {
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
  start(Consistency::Bsp, OnLoss::Fail);
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      EXPECT_EQ(reason([&] { stay(worker); }), "worker 1 is lost");
      return;
    }
    const auto channel = servers_->worker_channel(1);
    ServerClient own = client(*channel);
    for (int i = 0; i < 2; ++i) step(own, 1);
  });
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.lost.at(0), 1);
}

TEST_F(Losses, BspGoesOnWithoutALostWorkerByPolicy) {
  start(Consistency::Bsp, OnLoss::Continue);
  std::vector<double> seen[kWorkers];
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      seen[worker] = stay(worker);
      return;
    }
    const auto channel = servers_->worker_channel(1);
    ServerClient own = client(*channel);
    for (int i = 0; i < 2; ++i) step(own, 1);
  });
  EXPECT_EQ(seen[0], seen[2]);
  expect_mean(seen[0]);
}

// The last push of a worker arrives without its end: as if it had never been made.
TEST_F(Losses, APushThatIsCutOffChangesNothing) {
  start(Consistency::Bsp, OnLoss::Continue);
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
  for (const OnLoss on_loss : {OnLoss::Fail, OnLoss::Continue}) {
    options_.deadline_seconds = 20e-3;
    options_.num_workers = 2;
    pushed_.clear();
    start(Consistency::Bsp, on_loss);
    std::latch pushed(1), ended(1);
    on_workers(2, [&](int worker) {
      if (worker == 0) {
        pushed.wait();
        EXPECT_EQ(reason([&] { stay(0); }), on_loss == OnLoss::Fail ? "worker 1 is lost" : "");
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
  start(Consistency::Bsp, OnLoss::Fail);
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
  start(Consistency::Bsp, OnLoss::Fail);
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
  start(Consistency::Bsp, OnLoss::Continue);
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
  start(Consistency::Ssp, OnLoss::Fail);
  on_workers(kWorkers, [&](int worker) {
    if (worker != 1) {
      stay(worker);
      return;
    }
    const auto channel = servers_->worker_channel(1);
    ServerClient own = client(*channel);
    step(own, 1);
  });
  for (const auto& report : servers_->finish()) EXPECT_EQ(report.num_updates, 2 * kClocks + 1);
}

TEST_F(Losses, AspGoesOn) {
  start(Consistency::Asp, OnLoss::Fail);
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
  start(Consistency::Asp, OnLoss::Fail, 1);
  const auto channel = servers_->worker_channel(0);
  ServerClient own = client(*channel);
  step(own, 0);
  servers_.reset();
  KeyedTensors read{at::empty({kElements}, at::kDouble), {}};
  EXPECT_EQ(reason([&] { own.pull(read); }), "server 0 has closed its channel");
}

}  // namespace
}  // namespace braid::server_tests
