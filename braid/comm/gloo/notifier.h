// Where the threads of one rank sleep until something has changed.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace braid::comm::gloo {

// Thread-safe. A reader looks, then at what may have changed, then waits, so no news in between is lost.
class Notifier {
 public:
  static constexpr double kNapSeconds = 0.02;  // the longest sleep in one piece

  uint64_t look() const {
    const std::scoped_lock hold(mutex_);
    return count_;
  }
  void tell() {
    const std::scoped_lock hold(mutex_);
    ++count_;
    told_.notify_all();
  }
  // Returns when there is news since look() gave `seen`, or after `seconds` or a nap.
  void wait(uint64_t seen, double seconds) {
    std::unique_lock hold(mutex_);
    told_.wait_for(hold, std::chrono::duration<double>(std::min(seconds, kNapSeconds)), [&] { return count_ != seen; });
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable told_;
  uint64_t count_ = 0;
};

}  // namespace braid::comm::gloo
