// Where the processes of a world sleep: a futex, which is a word of shared memory.
#pragma once

#include <atomic>
#include <cstdint>

namespace braid::comm::shm {

// Lies in memory that processes share. A writer stores its news, then rings. A reader looks at the bell, then at the
// news, then sleeps, so no ring in between is lost:
//
//   seen = bell.look();  if (!ready()) bell.wait(seen, ...)
//
// A process that dies in wait() costs later rings a system call, nothing else.
class Notifier {
 public:
  static constexpr double kNapSeconds = 1;  // the longest sleep in one piece

  uint32_t look() const { return turns_.load(); }
  // Wakes all who wait.
  void ring();
  // Returns when the bell has been rung since look() gave `seen`, or `seconds` or a nap have passed; looks `spin_turns`
  // times before it sleeps. Where the process is stopped meanwhile, more time than that passes.
  void wait(uint32_t seen, double seconds, int spin_turns);

 private:
  std::atomic<uint32_t> turns_{0};
  std::atomic<uint32_t> sleepers_{0};
};

}  // namespace braid::comm::shm
