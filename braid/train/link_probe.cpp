// Times round trips, so that only the clock of the rank that begins is read.
#include "braid/train/link_probe.h"

#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <limits>

#include "braid/base/clock.h"
#include "braid/ckpt/exchange.h"
#include "braid/comm/agree.h"
#include "braid/train/measuring.h"

namespace braid::train {
namespace {

constexpr int kMostRanksOfAllPairs = 16;
constexpr int64_t kSmall = 8, kMedium = 256 << 10, kLarge = 4 << 20;
constexpr double kLinkBudget = 0.01, kSumBudget = 0.05;  // seconds of timing for one size
constexpr double kShortTrip = 0.01, kShortSum = 0.1;     // seconds; after a longer one no larger size is tried
constexpr int kFewest = 2, kMostTrips = 500;
constexpr int kQuestions = 20;  // number of requests for a clock

// The first action of a rank of a pair.
enum class Turn { Begins, Answers };

struct Pair {
  Communicator& world;
  int peer;
  Turn turn;

  void move(P2p::Kind kind, const at::Tensor& tensor) const {
    const P2p transfer{kind, tensor, peer, 0};
    world.batch({&transfer, 1}).wait_host();
  }
  // Returns the seconds of a round trip on the rank that begins.
  double trip(const at::Tensor& tensor) const {
    const double begin = now_seconds();
    move(turn == Turn::Begins ? P2p::Kind::Send : P2p::Kind::Recv, tensor);
    move(turn == Turn::Begins ? P2p::Kind::Recv : P2p::Kind::Send, tensor);
    return now_seconds() - begin;
  }
  // Returns the value of the rank that begins, on both ranks.
  double shared(double value) const {
    const at::Tensor number = at::full({1}, value, at::kDouble);
    move(turn == Turn::Begins ? P2p::Kind::Send : P2p::Kind::Recv, number);
    return number.item<double>();
  }
};

int repeats(double seconds, double budget) {
  return static_cast<int>(std::clamp(budget / seconds, 1.0 * kFewest, 1.0 * kMostTrips));
}

// Returns the shortest round trip in seconds, the same on both ranks.
double best_trip(const Pair& link, const at::Tensor& buffer, int64_t bytes) {
  const at::Tensor tensor = buffer.narrow(0, 0, bytes / buffer.element_size());
  link.trip(tensor);  // the first trip also sets up the connection
  double best = link.trip(tensor);
  const int trips = static_cast<int>(link.shared(repeats(best, kLinkBudget)));
  for (int trip = 0; trip < trips; ++trip) best = std::min(best, link.trip(tensor));
  return link.shared(best);
}

LinkSpeed measured_link(const Pair& link, const at::Tensor& buffer) {
  LinkSpeed speed;
  speed.latency_seconds = best_trip(link, buffer, kSmall) / 2;
  int64_t bytes = kMedium;
  double seconds = best_trip(link, buffer, bytes);
  if (seconds < kShortTrip) seconds = best_trip(link, buffer, bytes = kLarge);
  speed.bytes_per_second = 2 * static_cast<double>(bytes) / seconds;
  return speed;
}

// Returns the time of `count` all-reduces, one after another.
double seconds_of_sums(Communicator& world, const at::Tensor& tensor, int count) {
  world.barrier().wait_host();
  const double begin = now_seconds();
  for (int sum = 0; sum < count; ++sum) world.all_reduce(tensor, ReduceOp::Sum).wait_host();
  return now_seconds() - begin;
}

std::vector<LinkSpeed> pairs_by_rank(const std::vector<int>& host_of_rank) {
  const int num_ranks = static_cast<int>(host_of_rank.size());
  std::vector<std::vector<int>> ranks_of_host;
  for (int rank = 0; rank < num_ranks; ++rank) {
    const auto host = static_cast<size_t>(host_of_rank[static_cast<size_t>(rank)]);
    if (host >= ranks_of_host.size()) ranks_of_host.resize(host + 1);
    ranks_of_host[host].push_back(rank);
  }
  std::vector<LinkSpeed> pairs;
  const auto add = [&](int a, int b) { pairs.push_back({std::min(a, b), std::max(a, b)}); };
  for (int a = 0; num_ranks <= kMostRanksOfAllPairs && a < num_ranks; ++a) {
    for (int b = a + 1; b < num_ranks; ++b) add(a, b);
  }
  if (num_ranks <= kMostRanksOfAllPairs) return pairs;
  for (size_t a = 0; a < ranks_of_host.size(); ++a) {
    const std::vector<int>& here = ranks_of_host[a];
    for (size_t i = 0; i + 1 < here.size(); ++i) add(here[i], here[i + 1]);
    for (size_t b = a + 1; b < ranks_of_host.size(); ++b) {  // the ranks of a host take turns
      const std::vector<int>& there = ranks_of_host[b];
      add(here[b % here.size()], there[a % there.size()]);
    }
  }
  return pairs;
}

double wall_clock() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// Asks a peer for its clocks. The peer reads them between the request and the arrival of the answer.
ClockDifference asked_clock(const Pair& link) {
  ClockDifference difference{link.peer, 0, 0, std::numeric_limits<double>::infinity()};
  const at::Tensor clocks = at::zeros({2}, at::kDouble);
  double* const values = clocks.data_ptr<double>();
  for (int question = 0; question < kQuestions; ++question) {
    const double wall = wall_clock(), begin = now_seconds();
    link.move(P2p::Kind::Send, clocks);
    link.move(P2p::Kind::Recv, clocks);
    const double half = (now_seconds() - begin) / 2;
    if (half < difference.within_seconds) {
      difference = {link.peer, values[0] - (wall + half), values[1] - (begin + half), half};
    }
  }
  return difference;
}

void answer_clock(const Pair& link) {
  const at::Tensor clocks = at::zeros({2}, at::kDouble);
  for (int question = 0; question < kQuestions; ++question) {
    link.move(P2p::Kind::Recv, clocks);
    clocks.data_ptr<double>()[0] = wall_clock();
    clocks.data_ptr<double>()[1] = now_seconds();
    link.move(P2p::Kind::Send, clocks);
  }
}

// Measures the groups of one kind at the same time; this rank is in `group`. `world` synchronizes the groups.
void measure_sums(Communicator& world, Communicator& group, SumSpeed kind, std::vector<SumSpeed>& all) {
  constexpr std::array<int64_t, 4> kSizes{8, 64 << 10, 1 << 20, 16 << 20};
  const at::Tensor buffer = at::zeros({kSizes.back() / 4});
  double last = 0;
  for (const int64_t bytes : kSizes) {
    if (last > kShortSum) break;
    const at::Tensor tensor = buffer.narrow(0, 0, bytes / 4);
    seconds_of_sums(group, tensor, 1);
    const double once = comm::agree(world, "time of an all-reduce", seconds_of_sums(group, tensor, 1), ReduceOp::Max);
    const int count = repeats(once, kSumBudget);
    kind.bytes = bytes;
    kind.seconds = last =
        comm::agree(world, "time of all-reduces", seconds_of_sums(group, tensor, count), ReduceOp::Max) / count;
    all.push_back(kind);
  }
}

// Returns the number of ranks of each host; 0 if hosts have different numbers.
int ranks_per_host(const std::vector<int>& host_of_rank) {
  const auto of_first = static_cast<int>(std::ranges::count(host_of_rank, host_of_rank[0]));
  for (const int host : host_of_rank) {
    if (std::ranges::count(host_of_rank, host) != of_first) return 0;
  }
  return of_first;
}

}  // namespace

std::vector<std::vector<LinkSpeed>> rounds_of_pairs(const std::vector<int>& host_of_rank) {
  const auto host = [&](int rank) { return host_of_rank[static_cast<size_t>(rank)]; };
  std::vector<std::vector<LinkSpeed>> rounds;
  for (const LinkSpeed& pair : pairs_by_rank(host_of_rank)) {
    const auto busy = [&](const LinkSpeed& other) {
      const std::array<int, 2> taken{host(other.first), host(other.second)};
      return std::ranges::count(taken, host(pair.first)) + std::ranges::count(taken, host(pair.second)) > 0;
    };
    auto round = std::ranges::find_if(rounds, [&](const auto& pairs) { return std::ranges::none_of(pairs, busy); });
    if (round == rounds.end()) round = rounds.insert(round, std::vector<LinkSpeed>());
    round->push_back(pair);
  }
  return rounds;
}

LinkSpeed measured_pair(Communicator& world, LinkSpeed pair, at::Device device) {
  const bool is_one = world.rank() == pair.first || world.rank() == pair.second;
  at::Tensor buffer;
  const auto allocate = [&] {
    if (is_one) buffer = uncounted_tensor({kLarge / 4}, at::kFloat, device);
  };
  ckpt::all_or_none(allocate, world);
  if (is_one) {
    const bool begins = world.rank() == pair.first;
    const LinkSpeed speed =
        measured_link({world, begins ? pair.second : pair.first, begins ? Turn::Begins : Turn::Answers}, buffer);
    pair.latency_seconds = speed.latency_seconds;
    pair.bytes_per_second = speed.bytes_per_second;
  }
  pair.latency_seconds = comm::agree(world, "latency of a pair", pair.latency_seconds, ReduceOp::Max);
  pair.bytes_per_second = comm::agree(world, "bandwidth of a pair", pair.bytes_per_second, ReduceOp::Max);
  return pair;
}

std::vector<LinkSpeed> measured_links(Communicator& world, const std::vector<int>& host_of_rank) {
  const at::Tensor buffer = at::zeros({kLarge / 4});
  std::vector<LinkSpeed> mine;
  for (const auto& pairs : rounds_of_pairs(host_of_rank)) {
    for (const LinkSpeed& pair : pairs) {
      if (pair.first == world.rank()) {
        mine.push_back(measured_link({world, pair.second, Turn::Begins}, buffer));
        mine.back().first = pair.first;
        mine.back().second = pair.second;
      } else if (pair.second == world.rank()) {
        measured_link({world, pair.first, Turn::Answers}, buffer);
      }
    }
    world.barrier().wait_host();
  }
  return mine;
}

std::vector<SumSpeed> measured_sums(Communicator& world, const std::vector<int>& host_of_rank) {
  std::vector<SumSpeed> all;
  const int here = ranks_per_host(host_of_rank), ranks = world.size(), rank = world.rank();
  const auto first = std::ranges::find(host_of_rank, host_of_rank[static_cast<size_t>(rank)]);
  const auto place = static_cast<int>(first - host_of_rank.begin());
  // The number of ranks of this host before this one.
  const int of_host = static_cast<int>(std::count(first, host_of_rank.begin() + rank, *first));
  const auto measure = [&](int color, SumSpeed kind) {
    const auto group = world.split(color, rank, "sums");
    measure_sums(world, *group, kind, all);
  };
  for (int size = 2; size <= here && size < ranks; size *= 2) {
    if (here % size == 0) measure(place + of_host / size * size, {.ranks = size, .per_host = size});
  }
  if (here > 1 && ranks > here) measure(of_host, {.ranks = ranks / here, .per_host = 1});
  measure_sums(world, world, {.ranks = ranks, .per_host = here > 0 ? here : ranks}, all);
  return all;
}

std::vector<ClockDifference> measured_clocks(Communicator& world, const std::vector<int>& host_of_rank) {
  std::vector<ClockDifference> found;
  for (int rank = 1; rank < world.size(); ++rank) {
    const auto at = host_of_rank.begin() + rank;
    if (std::find(host_of_rank.begin(), at, *at) != at) continue;
    if (world.rank() == 0) found.push_back(asked_clock({world, rank, Turn::Begins}));
    if (world.rank() == rank) answer_clock({world, 0, Turn::Answers});
  }
  return found;
}

}  // namespace braid::train
