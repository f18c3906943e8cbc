// The updates of a parameter server: under BSP what one process would, whatever the number of servers and however badly
// the transport behaves.
#include <gtest/gtest.h>

#include <latch>

#include "braid/base/clock.h"
#include "braid/sync/server/protocol.h"
#include "tests/support/faulty_channel.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_updates_test {
namespace {

struct Training {
  KeyShape shape = {at::kDouble, 3000, {{30, 2}}};
  optim::ElementRule rule = {.kind = OptimizerKind::AdamW, .weight_decay = 0.1};
  int servers = 1, workers = 3;
  int64_t first_clock = 0, end_clock = 6;
  ChannelFaults faults = {};
  uint64_t seed = 1;
};

struct TrainingEnd {
  ShardState state;
  int64_t repeated = 0, damaged = 0, resent = 0;
};

KeyedTensors every_row(const KeyShape& shape) {
  KeyedTensors wanted;
  wanted.dense = at::empty({shape.num_elements}, shape.type);
  for (const TableShape& table : shape.tables) {
    TableRows all{at::empty({table.rows}, at::kLong), {}};
    for (int64_t row = 0; row < table.rows; ++row) all.index.mutable_data_ptr<int64_t>()[row] = row;
    wanted.rows.push_back(all);
  }
  return wanted;
}

// A gradient that depends on what was read: half of each parameter is added.
KeyedTensors gradient_at(const KeyShape& shape, const KeyedTensors& read, int worker, int64_t clock) {
  KeyedTensors push = gradient(shape, worker, clock);
  with_value_of(shape.type, [&](auto zero) {
    using T = decltype(zero);
    T* dense = push.dense.mutable_data_ptr<T>();
    for (int64_t i = 0; i < push.dense.numel(); ++i) dense[i] += read.dense.const_data_ptr<T>()[i] / 2;
    for (size_t t = 0; t < push.rows.size(); ++t) {
      const int64_t width = shape.tables[t].width;
      const int64_t* rows = push.rows[t].index.const_data_ptr<int64_t>();
      T* value = push.rows[t].values.mutable_data_ptr<T>();
      const T* of_row = read.rows[t].values.const_data_ptr<T>();
      for (int64_t i = 0; i < push.rows[t].values.numel(); ++i)
        value[i] += of_row[rows[i / width] * width + i % width] / 2;
    }
  });
  return push;
}

class Worker {
 public:
  Worker(const Training& run, LocalServers& servers, int number)
      : run_(run),
        number_(number),
        faulty_(servers.worker_channel(number), run.faults, run.seed * 100 + number),
        client(servers.shares(), run.rule, {.deadline_seconds = 120, .retry_seconds = retry(run)}, faulty_) {}

  static double retry(const Training& run) { return run.faults.delayed > 0 ? 1e-3 : 0; }

  void train() {
    KeyedTensors read = every_row(run_.shape);
    for (int64_t clock = run_.first_clock; clock < run_.end_clock; ++clock) {
      client.pull(read);
      client.push(gradient_at(run_.shape, read, number_, clock), 0.01 * static_cast<double>(clock + 1));
    }
    client.pull(read);  // now all pushes are applied
  }

 private:
  const Training& run_;
  const int number_;
  FaultyChannel faulty_;

 public:
  ServerClient client;
};

TrainingEnd trained(const Training& run, const ShardState& start) {
  LocalServersOptions options{.num_servers = run.servers, .rule = run.rule};
  options.server.num_workers = run.workers;
  options.wrap = [&](std::unique_ptr<Channel> inner) -> std::unique_ptr<Channel> {
    const uint64_t seed = run.seed * 100 + 50 + static_cast<uint64_t>(inner->endpoint());
    return std::make_unique<FaultyChannel>(std::move(inner), run.faults, seed);
  };
  LocalServers servers(run.shape, options);
  std::latch stored(run.workers);
  TrainingEnd end;
  std::mutex mutex;
  on_workers(run.workers, [&](int number) {
    Worker worker(run, servers, number);
    if (number == 0) worker.client.store(start);
    stored.arrive_and_wait();
    worker.train();
    if (number == 0) end.state = worker.client.fetch();
    worker.client.leave();
    const std::lock_guard lock(mutex);
    end.resent += worker.client.report().num_resent;
  });
  for (const ServerReport& report : servers.finish()) {
    end.repeated += report.num_repeated;
    end.damaged += report.num_damaged;
    EXPECT_EQ(report.num_updates, run.end_clock - run.first_clock);
    EXPECT_EQ(report.staleness.most(), 0);
    EXPECT_TRUE(report.lost.empty());
  }
  return end;
}

TrainingEnd trained(const Training& run) { return trained(run, initial_state(run.shape, run.rule)); }

// By which the hang detector knows a server that waits from one that hangs.
TEST(ServerActivity, CountsEveryAnswerAndWaitsBetweenThem) {
  comm::RankActivity activity;
  activity.begin_serving("requests of workers");
  LocalServersOptions options{.num_servers = 1};
  options.server.num_workers = 1;
  options.server.activity = &activity;
  const KeyShape shape{at::kDouble, 10, {}};
  LocalServers servers(shape, options);
  const auto channel = servers.worker_channel(0);
  ServerClient client(servers.shares(), options.rule, {}, *channel);
  client.push(gradient(shape, 0, 0), 0.1);
  client.leave();
  servers.finish();
  EXPECT_GE(activity.look().count, 4) << "join, start, push and leave";
  EXPECT_TRUE(activity.look().serves);
}

TEST(BspServer, EqualsOneProcess) {
  for (const auto kind : {OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::AdamW}) {
    for (const int workers : {1, 2, 5}) {
      Training run{.shape = {at::kDouble, 3000, {}}, .workers = workers};
      run.rule.kind = kind;
      Reference serial{run.rule, 0, 0.1, doubles(initial_state(run.shape, run.rule).elements[0])};
      serial.first = serial.second = std::vector<double>(3000);
      for (int64_t clock = 0; clock < run.end_clock; ++clock) {
        std::vector<double> mean(3000);
        for (int worker = 0; worker < workers; ++worker) {
          const auto own = doubles(gradient(run.shape, worker, clock).dense);
          for (size_t i = 0; i < mean.size(); ++i) mean[i] += (own[i] + serial.weight[i] / 2) / workers;
        }
        serial.lr = 0.01 * static_cast<double>(clock + 1);
        serial.step(mean, clock + 1);
      }
      const auto got = doubles(trained(run).state.elements[0]);
      for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], serial.weight[i], 1e-12) << i;
    }
  }
}

TEST(BspServer, SeveralServersEqualOneBitForBit) {
  for (const auto type : {at::kFloat, at::kDouble}) {
    Training run;
    run.shape.type = type;
    const auto one = numbers(trained(run).state);
    for (const int servers : {2, 3, 5}) {
      run.servers = servers;
      EXPECT_EQ(numbers(trained(run).state), one) << servers;
    }
  }
}

TEST(BspServer, LateRepeatedReorderedAndCutMessagesChangeNothing) {
  Training run{.servers = 2};
  const auto clean = numbers(trained(run).state);
  run.faults = {.delayed = 0.2, .repeated = 0.2, .cut = 0.1, .dropped = 0.1};
  TrainingEnd all;
  for (run.seed = 1; run.seed <= (kTsan ? 3 : 20); ++run.seed) {
    const TrainingEnd end = trained(run);
    ASSERT_EQ(numbers(end.state), clean) << "seed " << run.seed;
    all.repeated += end.repeated;
    all.damaged += end.damaged;
    all.resent += end.resent;
  }
  EXPECT_GT(all.repeated, 0);
  EXPECT_GT(all.damaged, 0);
  EXPECT_GT(all.resent, 0);
}

TEST(BspServer, ARunGoesOnAfterARestartOnAnotherNumberOfServers) {
  for (const auto kind : {OptimizerKind::Sgd, OptimizerKind::Adagrad, OptimizerKind::AdamW}) {
    Training run;
    run.rule.kind = kind;
    const auto whole = numbers(trained(run).state);
    Training first = run, second = run;
    first.end_clock = second.first_clock = 3;
    second.servers = 3;
    EXPECT_EQ(numbers(trained(second, trained(first).state).state), whole);
  }
}

// One thread may be several workers where nobody waits.
class Asynchronous : public testing::Test {
 protected:
  static constexpr int kWorkers = 2;
  const KeyShape shape_{at::kFloat, 2000, {{100000, 8}}};
  const optim::ElementRule rule_{};
  LocalServers servers_{shape_, {.server = {.consistency = Consistency::Asp, .num_workers = kWorkers}}};

  struct Member {
    std::unique_ptr<Channel> channel;
    std::unique_ptr<ServerClient> client;
  };
  Member member(int worker, ClientOptions options = {}) {
    options.consistency = Consistency::Asp;
    Member made{servers_.worker_channel(worker), nullptr};
    made.client = std::make_unique<ServerClient>(servers_.shares(), rule_, options, *made.channel);
    return made;
  }
  KeyedTensors wanted() const {
    KeyedTensors all;
    all.dense = at::empty({shape_.num_elements}, shape_.type);
    all.rows.resize(1);
    return all;
  }
  KeyedTensors constant(float value) const {
    KeyedTensors push = wanted();
    std::fill_n(push.dense.mutable_data_ptr<float>(), push.dense.numel(), value);
    return push;
  }
};

TEST_F(Asynchronous, StalenessCountsTheUpdatesBetweenPullAndPush) {
  Member slow = member(0), quick = member(1);
  KeyedTensors of_slow = wanted(), of_quick = wanted();
  for (int round = 0; round < 2; ++round) {
    slow.client->pull(of_slow);
    for (int i = 0; i < 3; ++i) {
      quick.client->pull(of_quick);
      quick.client->push(constant(1), 1);
    }
    quick.client->pull(of_quick);
    slow.client->push(constant(1), 1);
    slow.client->pull(of_slow);
    EXPECT_EQ(doubles(of_slow.dense)[0], -4 * (round + 1));
  }
  slow.client->leave();
  quick.client->leave();
  EXPECT_EQ(slow.client->report().staleness.counts(), (std::vector<int64_t>{0, 0, 0, 2}));
  EXPECT_EQ(quick.client->report().staleness.counts(), (std::vector<int64_t>{6}));
  EXPECT_EQ(servers_.finish()[0].staleness.counts(), (std::vector<int64_t>{6, 0, 0, 2}));
}

TEST_F(Asynchronous, WhoeverWaitsForALossLeavesServersTimeToLearnOfIt) {
  Member one = member(0), other = member(1);
  KeyedTensors read = wanted();
  other.client->push(constant(1), 1);
  other.client->pull(read);
  const int64_t before = one.client->report().bytes_sent;
  const double begin = now_seconds();
  std::jthread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    other.client->leave();
  });
  EXPECT_EQ(one.client->pushes_of_lost(1), 1);
  const double most_requests = 1 + (now_seconds() - begin) / 1e-3,
               bytes_of_request = sizeof(int64_t) * Envelope::kNumFields;
  EXPECT_LE(static_cast<double>(one.client->report().bytes_sent - before), most_requests * bytes_of_request);
  leaver.join();
  one.client->leave();
}

TEST_F(Asynchronous, PushAndPullHaveIntervalsOfTheirOwn) {
  Member one = member(0, {.push_every = 3, .pull_every = 2});
  KeyedTensors read = wanted();
  std::vector<bool> pulled;
  std::vector<double> seen;
  for (int step = 0; step < 8; ++step) {
    pulled.push_back(one.client->pull(read));
    seen.push_back(doubles(read.dense)[0]);
    one.client->push(constant(1), 1);
  }
  EXPECT_EQ(pulled, (std::vector<bool>{true, false, true, false, true, false, true, false}));
  EXPECT_EQ(seen, (std::vector<double>{0, 0, 0, 0, -3, -3, -6, -6}));
  EXPECT_EQ(one.client->clock(), 2);
  one.client->leave();
}

TEST_F(Asynchronous, OnlyTouchedRowsTravel) {
  Member one = member(0);
  KeyedTensors push = constant(0), read = wanted();
  one.client->pull(read);
  one.client->push(push, 1);
  one.client->pull(read);
  const ClientReport before = one.client->report();
  push.rows[0] = {at::empty({10}, at::kLong), values({10, 8}, at::kFloat, 3)};
  for (int64_t i = 0; i < 10; ++i) push.rows[0].index.mutable_data_ptr<int64_t>()[i] = 9000 * i;
  read.rows[0].index = push.rows[0].index;
  one.client->push(push, 1);
  one.client->pull(read);
  const int64_t dense = 2000 * 4, headers = 100;
  EXPECT_NEAR(static_cast<double>(one.client->report().bytes_sent - before.bytes_sent), dense + 10 * (8 + 32 + 8), 200);
  EXPECT_NEAR(static_cast<double>(one.client->report().bytes_received - before.bytes_received),
              dense + 10 * 40 + headers, 200);
  const auto pushed = doubles(push.rows[0].values), got = doubles(read.rows[0].values);
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], -pushed[i]);
  one.client->leave();
}

}  // namespace
}  // namespace braid::sync::server::tests::server_updates_test
