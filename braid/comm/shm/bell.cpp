// The futex, shared between processes. Counts are sequentially consistent: a ringer stores its turn and reads the
// sleepers, a sleeper does the opposite.
#include "braid/comm/shm/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "braid/base/clock.h"
#include "braid/comm/pause.h"

namespace braid {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

constexpr double kNap = 1.0;  // seconds, the longest sleep in one piece

}  // namespace

void Bell::ring() {
  turns_.fetch_add(1);
  if (sleepers_.load() > 0) syscall(SYS_futex, &turns_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Bell::wait(uint32_t seen, double seconds, int spin_turns) {
  for (int turn = 0; turn < spin_turns; ++turn) {
    if (look() != seen) return;
    pause_briefly();
  }
  const double until = now_seconds() + seconds;
  sleepers_.fetch_add(1);
  while (look() == seen) {
    const double left = std::min(until - now_seconds(), kNap);
    if (left <= 0) break;
    const timespec nap{static_cast<time_t>(left), static_cast<long>((left - static_cast<time_t>(left)) * 1e9)};
    syscall(SYS_futex, &turns_, FUTEX_WAIT, seen, &nap, nullptr, 0);  // whatever it returns, look again
  }
  sleepers_.fetch_sub(1);
}

}  // namespace braid
