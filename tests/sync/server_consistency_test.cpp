// Waiting of workers: bounds on staleness under random delays.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <map>

#include "braid/base/errors.h"
#include "tests/sync/server_world.h"

namespace braid::sync::server::tests::server_consistency_test {
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
                      .staleness = staleness(),
                      .num_workers = num_workers_,
                      .num_initial = num_workers_ - late_};
    LocalServers servers({at::kFloat, 8, {}}, options);
    on_workers(num_workers_, [&](int worker) { work(worker, servers); });
    servers.finish();
  }

  int64_t staleness() const { return static_cast<int64_t>(draw(1) % 4); }
  int64_t furthest() const { return furthest_; }

 private:
  uint64_t draw(uint64_t what) const { return random_bits(stream_key(seed_, "run"), what); }
  void work(int worker, LocalServers& servers) {
    const bool is_late = late_ && worker == num_workers_ - 1;
    const uint64_t delays = stream_key(seed_, std::to_string(worker));
    if (is_late) pause(delays, 1000, 5);
    const auto channel = servers.worker_channel(worker);
    ServerClient client(servers.shares(), servers.rule(),
                        {.consistency = consistency_,
                         .staleness = staleness(),
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
    ASSERT_LE(run.furthest(), run.staleness()) << "seed " << seed;
    reached[run.staleness()] = std::max(reached[run.staleness()], run.furthest());
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

}  // namespace
}  // namespace braid::sync::server::tests::server_consistency_test
