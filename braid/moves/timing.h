// The time that a table of moves takes: when each move runs on the disk, and where computation waits for one.
#pragma once

#include <vector>

#include "braid/moves/table.h"

namespace braid::moves {

struct Interval {
  double begin = 0, end = 0;  // seconds since the first step began
};

struct Timing {
  std::vector<Interval> uses;       // by use of the table
  std::vector<Interval> loads;      // by load of the table
  std::vector<Interval> evictions;  // by eviction of the table; a drop takes no time
  double waiting = 0;               // seconds in which computation waits for loads
  double total = 0;                 // seconds until the last use has ended
};

// Returns the times of a table on a disk that runs one move at a time, at `bytes_per_second` for reading and writing.
// `seconds` has the time of each use of a step. Moves are requested when the use before them ends, evictions first, and
// run in that order. REQUIRES: the table has no faults.
Timing simulate(const Trace& trace, const Table& table, double bytes_per_second, const std::vector<double>& seconds);

}  // namespace braid::moves
