// Plays a schedule on a virtual clock, also with ranks that share cores.
#pragma once

#include <functional>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {

// Plays a schedule whose ranks share fewer cores than they are.

// The times of every action where the ranks have `cores` between them, which may be a fraction: while k of them
// compute, each does so at min(1, cores / k) of its speed (processor sharing). An action begins when its rank is free
// and what it needs is made; transfers take no time. `schedule` has none, and can run to its end (check).
//
// Time is linear in actions times ranks, memory in actions.
Timeline simulate_sharing(const Schedule& schedule, const CostModel& cost, double cores);

// The times of every action, in units of the cost model from 0. Every rank runs its program in order, each action as
// soon as the rank is free and what it needs is there.
//
// Buffered: a send begins its transfer and the rank goes on at once; its span ends when the tensor arrives. A receive
// spans the wait for it, or nothing when the tensor is there. Rendezvous: both ranks wait for each other, then for the
// transfer. A schedule without transfers is simulated as if with_comms() had been applied, but its timeline holds no
// transfer spans when sends are buffered (half the memory; a rank waits between spans instead).
// A fused pair begins when both of its actions may and takes the time of compute_pair(); what both make is there at its
// end. Reductions, UNSHARD and RESHARD take no time.
//
// Throws ConfigError with what stops each rank when the schedule cannot run to its end. Time and memory are linear in
// the number of actions: about 60 bytes for each.
Timeline simulate(const Schedule& schedule, const CostModel& cost, SendMode mode = SendMode::Buffered);

// Takes a span once its times are known: those of a rank in the order they run, the ranks one among the other.
using SpanVisitor = std::function<void(int rank, const Span& span)>;

// The same, but keeps no span: `visit` takes each. Of every action 8 bytes stay, and 8 of every microbatch on a stage.
void simulate(const Schedule& schedule, const CostModel& cost, SendMode mode, const SpanVisitor& visit);

// The best case of a measured step: every action that computes takes the time it took, begins as soon as its rank is
// free and what it needs is there, and nothing else takes time. No rank is busy for less, no action ends
// later, so neither makespan nor bubble is more than in `measured`, which has a row for each program of `schedule` and
// a span for each action (check). Buffered sends.
Timeline replay(const Schedule& schedule, const Timeline& measured);

}  // namespace braid::schedule
