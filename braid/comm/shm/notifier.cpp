// The futex, shared between processes. Loads and stores are sequentially consistent: notify() stores its event and then
// reads the number of sleepers; sleep() does the opposite.
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

void Notifier::notify() {
  events_.fetch_add(1);
  if (sleepers_.load() > 0) syscall(SYS_futex, &events_, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void Notifier::sleep(uint32_t seen, double seconds, int spin_turns) {
  for (int turn = 0; turn < spin_turns; ++turn) {
    if (events() != seen) return;
    pause_briefly();
  }
  const double most = std::min(seconds, kLongestSleep);
  const timespec limit{static_cast<time_t>(most), static_cast<long>((most - static_cast<time_t>(most)) * 1e9)};
  sleepers_.fetch_add(1);
  if (events() == seen) syscall(SYS_futex, &events_, FUTEX_WAIT, seen, &limit, nullptr, 0);
  sleepers_.fetch_sub(1);
}

}  // namespace braid::comm::shm
