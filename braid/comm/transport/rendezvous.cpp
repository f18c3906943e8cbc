// Who has come, and who is missing.
#include "braid/comm/transport/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/comm/transport/grace.h"
#include "braid/comm/transport/wire.h"

namespace braid::comm::transport {

const RankOptions& checked_self(const WorldOptions& options) {
  const RankOptions& self = options.self;
  check(options.store && self.failures, "a world has a store and a failure state");
  for (const auto* const places : {&self.node_of_rank, &self.host_of_rank}) {
    check(places->empty() || static_cast<int>(places->size()) == self.size, "all ranks of a world are placed");
  }
  check(self.rank >= 0 && self.rank < self.size, "a rank of a world is one of its ranks");
  return self;
}

Group world_group(const WorldOptions& options) {
  Group world{.name = "world", .world_ranks = std::vector<int>(options.self.size), .rank = options.self.rank};
  std::iota(world.world_ranks.begin(), world.world_ranks.end(), 0);
  return world;
}

void meet(const WorldOptions& options, const Group& group, const std::string& prefix, const std::string& engine,
          const std::function<bool()>& given_up) {
  constexpr double kNapSeconds = 0.02;
  const auto key = [&](int rank) { return cat(prefix, "here/", rank); };
  const auto is_here = [&](int rank, double seconds) { return options.store->get(key(rank), seconds).has_value(); };
  const std::string label = cat("the start of ", engine, " on ", group.name);
  options.store->set(key(options.self.rank), "");
  const double end = now_seconds() + options.self.deadline_seconds;
  ReportedWait reported(options.self.activity);
  const auto nap = [&] { return reported.nap(kNapSeconds, [&] { return label; }); };
  for (const int rank : group.world_ranks) {
    while (!is_here(rank, nap()) && now_seconds() < end && !given_up()) continue;
  }
  if (given_up()) throw WireError("given up");
  std::vector<int> missing;
  std::ranges::copy_if(group.world_ranks, std::back_inserter(missing), [&](int rank) { return !is_here(rank, 0); });
  if (missing.empty()) return;
  options.self.failures->fail({missing[0], options.self.rank,
                               cat("did not arrive at ", label, " within ", exact(options.self.deadline_seconds), " s ",
                                   text_of_missing(missing))});
  throw WireError("late");
}

void rendezvous(const WorldOptions& options, const std::string& operation, const std::function<void()>& connect) {
  const double begin = now_seconds();
  try {
    connect();
  } catch (const WireError& error) {
    std::optional<Failure> first;
    // A peer may have died, which its supervisor reports.
    for (Grace grace(Grace::kOfConnection); !options.self.failures->failure() && grace.lasts();) poll(nullptr, 0, 10);
    options.self.failures->fail({options.self.rank, options.self.rank, error.what()});
    while (!(first = options.self.failures->failure())) poll(nullptr, 0, 10);
    throw CommError({operation, first->rank, now_seconds() - begin, first->why});
  }
}

}  // namespace braid::comm::transport
