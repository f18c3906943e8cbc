// Simulates a schedule on a virtual clock, also with ranks that share cores.
#pragma once

#include <functional>

#include "braid/schedule/cost_model.h"
#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {

// Returns the times of every action if all ranks together have `cores`, which need not be an integer. While k ranks
// compute, each runs at min(1, cores / k) of its speed (processor sharing). An action begins when its rank is free and
// its inputs are complete. Transfers take no time. REQUIRES: `schedule` has no transfers and can run to its end.
//
// The run time is linear in actions times ranks, the memory in actions.
Timeline simulate_sharing(const Schedule& schedule, const CostModel& cost, double cores);

// Returns the times of every action, from 0, in units of the cost model. Every rank runs its program in order, each
// action as soon as the rank is free and the action's inputs are available.
//
// Buffered: a send starts a transfer, and the rank continues at once. The send's span ends when the tensor arrives. A
// receive's span is the wait for the tensor, and is empty if the tensor is there. Rendezvous: both ranks wait for each
// other, then for the transfer.
//
// A schedule without transfers is simulated as if with_comms() had been applied. If sends are buffered, its timeline
// has no spans for transfers, which halves the memory; a rank waits between spans instead.
//
// A fused pair begins when both of its actions may begin and takes the time of compute_pair(). The outputs of both are
// available at its end. Reductions, UNSHARD and RESHARD take no time.
//
// Throws ConfigError with the reason why each rank stops if the schedule cannot run to its end. Run time and memory are
// linear in the number of actions, with about 60 bytes for each.
Timeline simulate(const Schedule& schedule, const CostModel& cost, SendMode mode = SendMode::Buffered);

// A function that receives each span once its times are known. The spans of a rank come in the order in which they run;
// those of different ranks are interleaved.
using SpanVisitor = std::function<void(int rank, const Span& span)>;

// Does the same, but passes each span to `visit` and keeps none. Its memory is 8 bytes for each action, and 8 for each
// microbatch on a stage (24 in a schedule with transfers).
void simulate(const Schedule& schedule, const CostModel& cost, SendMode mode, const SpanVisitor& visit);

// Returns the best case of a measured step. Every compute action takes its measured time and begins as soon as its rank
// is free and its inputs are available. Nothing else takes time, and sends are buffered. Each rank is busy for as long
// as in `measured`, and no action ends later, so makespan and bubble are at most those of `measured`. REQUIRES:
// `measured` has a row for each program of `schedule` and a span for each action.
Timeline replay(const Schedule& schedule, const Timeline& measured);

}  // namespace braid::schedule
