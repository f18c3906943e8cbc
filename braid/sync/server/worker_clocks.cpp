// Only live workers delay others.
#include "braid/sync/server/worker_clocks.h"

#include <algorithm>
#include <limits>

#include "braid/base/errors.h"

namespace braid::sync::server {

WorkerClocks::WorkerClocks(int num_workers, int num_initial) : workers_(static_cast<size_t>(num_workers)) {
  check(0 <= num_initial && num_initial <= num_workers, "initial workers are workers");
  for (int worker = 0; worker < num_initial; ++worker) at(worker).state = State::Live;
}

int64_t WorkerClocks::slowest() const {
  int64_t live = std::numeric_limits<int64_t>::max(), any = 0;
  for (const Worker& worker : workers_) {
    any = std::max(any, worker.clock);
    if (worker.state == State::Live) live = std::min(live, worker.clock);
  }
  return std::min(live, any);
}

bool WorkerClocks::all_ended() const {
  return std::all_of(workers_.begin(), workers_.end(), [](const Worker& w) { return w.state == State::Ended; });
}

int WorkerClocks::num_live() const {
  const auto is_live = [](const Worker& worker) { return worker.state == State::Live; };
  return static_cast<int>(std::ranges::count_if(workers_, is_live));
}

void WorkerClocks::join(int worker) {
  check(at(worker).state != State::Live, "who joins is not live");
  at(worker) = {State::Live, slowest()};
}

void WorkerClocks::move_ahead(int worker, int64_t clock) {
  check(clock >= at(worker).clock, "clocks go ahead");
  at(worker).clock = clock;
}

}  // namespace braid::sync::server
