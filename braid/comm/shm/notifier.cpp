// The futex, shared between processes. Counts are sequentially consistent: a ringer stores its turn and reads the
// sleepers, a sleeper does the opposite.
#include "braid/comm/shm/notifier.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <ctime>

#include "braid/comm/pause.h"

namespace braid::comm::shm {
namespace {

static_assert(sizeof(std::atomic<uint32_t>) == 4 && std::atomic<uint32_t>::is_always_lock_free);

}  // namespace

void Notifier::ring() {
  turns_.fetch_add(1);
  if (sleepers_.load() > 0) syscall(SYS_futex, &turns_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Notifier::wait(uint32_t seen, double seconds, int spin_turns) {
  for (int turn = 0; turn < spin_turns; ++turn) {
    if (look() != seen) return;
    pause_briefly();
  }
  const double nap = std::min(seconds, kNapSeconds);
  const timespec limit{static_cast<time_t>(nap), static_cast<long>((nap - static_cast<time_t>(nap)) * 1e9)};
  sleepers_.fetch_add(1);
  if (look() == seen) syscall(SYS_futex, &turns_, FUTEX_WAIT, seen, &limit, nullptr, 0);
  sleepers_.fetch_sub(1);
}

}  // namespace braid::comm::shm
