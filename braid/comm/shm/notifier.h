// A count of events on which the processes of a world sleep: a futex in shared memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace braid::comm::shm {

// Lies in memory that processes share. A writer stores what has changed, then calls notify(). A reader calls events(),
// then looks at what may have changed, then sleeps, so it misses no event:
//
//   seen = notifier.events();  if (!ready()) notifier.sleep(seen, ...)
//
// If a process dies in sleep(), later calls of notify() cost a system call, and nothing else happens.
class Notifier {
 public:
  static constexpr double kLongestSleep = 1;  // seconds

  uint32_t events() const { return events_.load(); }
  // Counts an event and wakes all sleepers.
  void notify();
  // Returns after an event that `seen` does not count, after `seconds`, or after kLongestSleep. Reads the count
  // `spin_turns` times before it sleeps. Takes longer if the process is stopped meanwhile.
  void sleep(uint32_t seen, double seconds, int spin_turns);

 private:
  std::atomic<uint32_t> events_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace braid::comm::shm
