// Walks a schedule in an order that respects every wait, without a clock. The validator and the simulator share it, so
// what the one accepts the other can play.
#pragma once

#include <functional>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Buffered: a receive waits for its send, a send for nothing. Rendezvous: both wait for each other.
enum class SendMode { Buffered, Rendezvous };

// One action that runs.
struct Visit {
  int rank = 0;
  int index = 0;         // in the rank's program
  int after_rank = -1;   // the rank of the action elsewhere that it waits for; -1: it waits for nothing elsewhere
  int after_index = -1;  // in that rank's program
};

// Calls `visit` for every action that can run: each after the ones before it in its program and after what it waits
// for. A forward waits for the forward of the stage before, a backward (B or I) for the one of the stage behind; on
// ranks apart they wait through the transfers when the schedule has transfers, and directly when it has none. Under
// rendezvous a send is visited with `after` naming its receive, when that is next on its rank, and the receive follows
// at once. A fused pair waits for what either of its actions waits for; then both are visited, one right after the
// other.
//
// Returns for each rank the index where it stops: its program's size when it runs to the end. The result and each
// rank's visits do not depend on the order of the walk (ranks are in-order processes; Kahn, 1974). Needs stages and
// microbatches in range; tolerates every other fault. Time and space are linear in the actions; each transfer that a
// faulty schedule repeats may take a look at every rank more.
std::vector<int> walk(const Schedule& schedule, SendMode mode, const std::function<void(const Visit&)>& visit);

}  // namespace braid::schedule
