// Proves a schedule before it runs: complete, in order, matched and free of deadlock.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/walk.h"

namespace braid::schedule {

// One thing wrong with a schedule.
struct Fault {
  int rank = -1;      // -1: of the schedule as a whole
  int position = -1;  // in the rank's program; -1: of something that is not there
  std::string text;
  bool operator==(const Fault&) const = default;
};

// Every fault at once, by rank and position; empty when the schedule can run. Checked are:
//  * stages and microbatches are in range, every action is on the owner of its stage and appears once;
//  * every microbatch has its F and its B, or its I and W, on every stage, with F before B or I, and I before W; if it
//    has a RECOMPUTE, that stands between;
//  * if there are transfers, neighbours on different ranks have their send (after the tensor is made) and their receive
//    (before it is needed), and neighbours on one rank have none;
//  * fused are only F and the B or I after it, of two microbatches;
//  * if there is any REDUCE_GRAD, every copy of a stage has one, after all its weight work;
//  * if there is any UPDATE, every copy of a stage has those of the same microbatches, its last one's among them, and
//    each comes after the weight work of all microbatches that it includes;
//  * if there is any UNSHARD or RESHARD, a stage's passes stand between the two, which alternate;
//  * no rank holds more than the schedule's promise, if it makes one: the cell at fault is the first above it;
//  * every rank reaches its end when sends behave as `mode` says. A rank that does not gives one fault, naming what it
//    waits for; for schedules without transfers the two modes are alike.
std::vector<Fault> validate(const Schedule& schedule, SendMode mode);

// The programs with faults, one line per rank, the faulty cells marked >like this<, then one line per fault. A fused
// pair is one cell. Long programs show the cells around the faults only. Empty when there are no faults.
std::string print(const Schedule& schedule, const std::vector<Fault>& faults);

}  // namespace braid::schedule
