#include "braid/moves/timing.h"

#include <algorithm>

#include "braid/base/errors.h"

namespace braid::moves {

Timing simulate(const Trace& trace, const Table& table, double bytes_per_second, const std::vector<double>& seconds) {
  check(std::ssize(seconds) == table.uses_per_step, "each use of a step has a time");
  Timing timing;
  std::vector<double> loaded(table.num_uses(), 0);  // by use: when the last of its loads ends
  double now = 0;                                   // when the last use has ended
  double free = 0;                                  // when the disk has run all moves so far
  const auto move = [&](int chunk, Fate fate) {
    const double begin = std::max(now, free);
    if (fate == Fate::Drop) return Interval{now, now};
    free = begin + static_cast<double>(trace.chunks[chunk].bytes) / bytes_per_second;
    return Interval{begin, free};
  };
  auto load = table.loads.begin();
  auto eviction = table.evictions.begin();
  for (int use = -1; use < table.num_uses(); ++use) {
    if (use >= 0) {
      const double begin = std::max(now, loaded[use]);
      timing.waiting += begin - now;
      now = begin + seconds[use % table.uses_per_step];
      timing.uses.push_back({begin, now});
    }
    for (; eviction != table.evictions.end() && eviction->after == use; ++eviction) {
      timing.evictions.push_back(move(eviction->chunk, eviction->fate));
    }
    for (; load != table.loads.end() && load->after == use; ++load) {
      timing.loads.push_back(move(load->chunk, Fate::Write));  // a load takes the time of a write
      loaded[load->before] = std::max(loaded[load->before], free);
    }
  }
  timing.total = now;
  return timing;
}

}  // namespace braid::moves
