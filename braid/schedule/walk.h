// Walks a schedule in an order that respects every dependency, without a clock. The validator and the simulator share
// it, so a schedule that the validator accepts can be simulated.
#pragma once

#include <functional>
#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Buffered: a receive waits for its send, and a send does not wait for its receive. Rendezvous: both wait for each
// other.
enum class SendMode { Buffered, Rendezvous };

// An action that runs, and the action on another rank that it waits for.
struct Visit {
  int rank = 0;
  int index = 0;         // index in the rank's program
  int after_rank = -1;   // rank of the action that it waits for; -1: it waits for no other rank
  int after_index = -1;  // index in that rank's program
};

// Calls `visit` for every action that can run, after the earlier actions of its program and after the actions that it
// waits for:
//  * A forward waits for the forward of the previous stage. A backward (B or I) waits for its own forward and for the
//    backward of the next stage. Between different ranks, they wait for the transfers if the schedule has transfers,
//    else directly for the other stage's action.
//  * Under rendezvous, a send waits until its receive is next on the receive's rank. The send is visited with `after`
//    naming the receive, and the receive is visited right after it.
//  * A fused pair waits for the dependencies of both actions. Then both are visited, one right after the other.
//
// Returns for each rank the index at which it stops: the size of its program if it runs to the end. The result and each
// rank's visits do not depend on the order of the walk (ranks are in-order processes; Kahn, 1974). REQUIRES: stages and
// microbatches are in range. Every other fault is allowed. Run time and memory are linear in the actions. For each
// transfer that a faulty schedule repeats, one more look at every rank may be needed.
std::vector<int> walk(const Schedule& schedule, SendMode mode, const std::function<void(const Visit&)>& visit);

}  // namespace braid::schedule
