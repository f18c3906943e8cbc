// How far workers of a parameter server get beside one that is slow, by consistency. Work is a sleep, so that cores are
// not what runs short; the messages are real.
//
//   bench_parameter_server SECONDS_PER_RUN
//
// Prints one line of JSON per run: steps done by each worker, seconds each waited, and the free workers' mean number of
// steps at equal moments.
#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/seeds.h"
#include "braid/sync/server/local_servers.h"
#include "braid/sync/server/server_client.h"

namespace {

constexpr int kWorkers = 4, kServers = 2, kSlow = kWorkers - 1;
constexpr int64_t kElements = 1 << 12;
constexpr double kWorkSeconds = 40e-3, kSlowdown = 3;
constexpr int kMoments = 40, kSpell = 8;

// How much longer than usual a worker's step takes.
using Slowdown = std::function<double(int worker, int64_t step)>;

double nobody(int, int64_t) { return 1; }
double one_worker(int worker, int64_t) { return worker == kSlow ? kSlowdown : 1; }
// Every worker is slow for a fourth of its time, kSpell steps in a row.
double spells(int worker, int64_t step) {
  const auto spell = static_cast<uint64_t>(step / kSpell * kWorkers + worker);
  return braid::random_bits(7, spell) % 4 == 0 ? kSlowdown : 1;
}

struct Rule {
  const char* name;
  braid::Consistency consistency;
  int64_t staleness;
};

class Race {
 public:
  Race(const Rule& rule, Slowdown slowdown, double seconds)
      : rule_(rule), slowdown_(std::move(slowdown)), seconds_(seconds), ends_(kWorkers), waited_(kWorkers) {
    const braid::KeyShape shape{at::kFloat, kElements, {}};
    const braid::ServerOptions options{
        .consistency = rule.consistency, .staleness = rule.staleness, .num_workers = kWorkers};
    braid::LocalServers servers(shape, {.num_servers = kServers, .server = options});
    begin_ = braid::now_seconds();
    std::vector<std::jthread> threads;
    for (int worker = 0; worker < kWorkers; ++worker) {
      threads.emplace_back([&, worker] { work(worker, servers); });
    }
  }

  void print(const char* scenario) const {
    std::printf(R"({"scenario": "%s", "rule": "%s", "seconds": %.3f, "steps": [)", scenario, rule_.name, seconds_);
    for (int w = 0; w < kWorkers; ++w) std::printf("%s%zu", w ? ", " : "", ends_[static_cast<size_t>(w)].size());
    std::printf("], \"waited\": [");
    for (int w = 0; w < kWorkers; ++w) std::printf("%s%.3f", w ? ", " : "", waited_[static_cast<size_t>(w)]);
    std::printf("], \"free\": [");
    for (int moment = 0; moment <= kMoments; ++moment) {
      std::printf("%s%.2f", moment ? ", " : "", free_steps(seconds_ * moment / kMoments));
    }
    std::printf("]}\n");
    std::fflush(stdout);
  }

 private:
  void work(int worker, braid::LocalServers& servers) {
    const auto channel = servers.worker_channel(worker);
    braid::ServerClient client(servers.shares(), servers.rule(),
                               {.consistency = rule_.consistency, .staleness = rule_.staleness}, *channel);
    braid::KeyedTensors weights{at::zeros({kElements}), {}};
    const braid::KeyedTensors gradient{at::zeros({kElements}), {}};
    auto& ends = ends_[static_cast<size_t>(worker)];
    for (int64_t step = 0;; ++step) {
      client.pull(weights);
      std::this_thread::sleep_for(std::chrono::duration<double>(kWorkSeconds * slowdown_(worker, step)));
      const double now = braid::now_seconds() - begin_;
      if (now > seconds_) break;
      client.push(gradient, 0.1);
      ends.push_back(now);
    }
    waited_[static_cast<size_t>(worker)] = client.report().waiting_seconds;
    client.leave();
  }

  double free_steps(double until) const {
    double steps = 0;
    for (int worker = 0; worker < kSlow; ++worker) {
      for (const double end : ends_[static_cast<size_t>(worker)]) steps += end <= until;
    }
    return steps / kSlow;
  }

  const Rule rule_;
  const Slowdown slowdown_;
  const double seconds_;
  double begin_ = 0;
  std::vector<std::vector<double>> ends_;  // of steps, by worker
  std::vector<double> waited_;
};

}  // namespace

int main(int count, char** words) {
  const double seconds = count > 1 ? std::atof(words[1]) : 6;
  const Rule rules[] = {{"bsp", braid::Consistency::Bsp, 0},
                        {"ssp 1", braid::Consistency::Ssp, 1},
                        {"ssp 8", braid::Consistency::Ssp, 8},
                        {"ssp 64", braid::Consistency::Ssp, 64},
                        {"asp", braid::Consistency::Asp, 0}};
  const std::pair<const char*, Slowdown> scenarios[] = {
      {"nobody", nobody}, {"one worker", one_worker}, {"spells", spells}};
  for (const auto& [name, slowdown] : scenarios) {
    for (const Rule& rule : rules) Race(rule, slowdown, seconds).print(name);
  }
}
