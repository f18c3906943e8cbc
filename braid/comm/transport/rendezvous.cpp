// Who has come, and who is missing.
#include "braid/comm/transport/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/transport/match_table.h"
#include "braid/comm/transport/wire.h"

namespace braid::comm::transport {

ProgressEngine::Options engine_options(const WorldOptions& options) {
  check(options.store && options.failures, "a world has a store and a failure state");
  const auto num_placed = static_cast<int>(options.node_of_rank.size());
  check(num_placed == 0 || num_placed == options.size, "all ranks of a world have a node, or none has");
  check(options.rank >= 0 && options.rank < options.size, "a rank of a world is one of its ranks");
  return {.rank = options.rank,
          .size = options.size,
          .failures = options.failures,
          .deadline_seconds = options.deadline_seconds,
          .activity = options.activity,
          .node_of_rank = options.node_of_rank};
}

Group world_group(const WorldOptions& options) {
  Group world{.name = "world", .world_ranks = std::vector<int>(options.size), .rank = options.rank};
  std::iota(world.world_ranks.begin(), world.world_ranks.end(), 0);
  return world;
}

void meet(const WorldOptions& options, const Group& group, const std::string& prefix, const std::string& engine,
          const std::function<bool()>& given_up) {
  constexpr double kNapSeconds = 0.02;
  const auto key = [&](int rank) { return cat(prefix, "here/", rank); };
  const auto is_here = [&](int rank, double seconds) { return options.store->get(key(rank), seconds).has_value(); };
  const std::string label = cat("the start of ", engine, " on ", group.name);
  options.store->set(key(options.rank), "");
  const double end = now_seconds() + options.deadline_seconds;
  ReportedWait reported(options.activity);
  const auto nap = [&] { return reported.nap(kNapSeconds, [&] { return label; }); };
  for (const int rank : group.world_ranks) {
    while (!is_here(rank, nap()) && now_seconds() < end && !given_up()) continue;
  }
  if (given_up()) throw WireError("given up");
  std::vector<int> missing;
  std::ranges::copy_if(group.world_ranks, std::back_inserter(missing), [&](int rank) { return !is_here(rank, 0); });
  if (missing.empty()) return;
  options.failures->fail(
      {missing[0], options.rank,
       cat("did not arrive at ", label, " within ", exact(options.deadline_seconds), " s ", text_of_missing(missing))});
  throw WireError("late");
}

void rendezvous(const WorldOptions& options, const std::string& operation, const std::function<void()>& connect) {
  const double begin = now_seconds();
  try {
    connect();
  } catch (const WireError& error) {
    std::optional<Failure> first;
    // A peer may have died, which its supervisor reports.
    const double end = now_seconds() + MatchTable::kNamedSeconds;
    while (!options.failures->failure() && now_seconds() < end) poll(nullptr, 0, 10);
    options.failures->fail({options.rank, options.rank, error.what()});
    while (!(first = options.failures->failure())) poll(nullptr, 0, 10);
    throw CommError({operation, first->rank, now_seconds() - begin, first->why});
  }
}

}  // namespace braid::comm::transport
