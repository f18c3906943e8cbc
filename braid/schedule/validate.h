// Validates a schedule before it runs: it must be complete, in order, matched and free of deadlock.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {

// A fault of a schedule.
struct Fault {
  int rank = -1;      // -1: a fault of the schedule as a whole
  int position = -1;  // index in the rank's program; -1: an action is missing
  std::string text;
  bool operator==(const Fault&) const = default;
};

// Returns all faults at once, by rank and position. The result is empty if the schedule can run. The rules are:
//  * Stages and microbatches are in range. Every action is on the owner of its stage and appears once.
//  * On every stage, every microbatch has F and B, or F, I and W, with F before B or I, and I before W. Of the
//  backward,
//    only the passes that Schedule::backward() leaves. RECOMPUTE, if there is any, comes after F and before B or I.
//  * If there are transfers, neighbouring stages on different ranks have a send, after the tensor is produced, and a
//    receive, before it is needed. Neighbouring stages on one rank have none, nor has a gradient that nothing needs.
//  * Only F and the B or I right after it are fused, and they are of two microbatches.
//  * If there is any REDUCE_GRAD, every copy of a stage with weight gradients has one, after all its weight
//    passes.
//  * If there is any UPDATE, all copies of stages update after the same microbatches and after their last one. Each
//    UPDATE comes after the weight passes of all microbatches that it includes.
//  * If there is any UNSHARD or RESHARD, the two alternate for each stage, and its passes are between them.
//  * No rank exceeds the schedule's promise, if there is one. The fault is at the first action that exceeds it.
//  * Every rank reaches the end of its program if sends behave as in `mode`. A rank that does not has one fault, which
//    names the action that it waits for. Without transfers both modes are the same.
std::vector<Fault> validate(const Schedule& schedule, SendMode mode);

// Returns a text with one line for each program that has faults, its faulty cells marked >like this<, then one line per
// fault. A fused pair is one cell. Long programs show only the cells around the faults. The text is empty if there are
// no faults.
std::string print(const Schedule& schedule, const std::vector<Fault>& faults);

}  // namespace braid::schedule
