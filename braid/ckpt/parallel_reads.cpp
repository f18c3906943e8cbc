// Threads take the next number from one counter, so when one fails, all lower ones have begun.
#include "braid/ckpt/parallel_reads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <limits>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace braid::ckpt {
namespace {

class Reads {
 public:
  Reads(int64_t count, const std::function<void(int64_t, int)>& read) : count_(count), read_(read) {}

  void take_all(int reader) {
    while (!failed_.load()) {
      const int64_t number = next_++;
      if (number >= count_) return;
      try {
        read_(number, reader);
      } catch (...) {
        fail(number);
      }
    }
  }
  void throw_lowest() const {
    if (fault_) std::rethrow_exception(fault_);
  }

 private:
  void fail(int64_t number) {
    const std::scoped_lock hold(lock_);
    failed_ = true;
    if (number > lowest_) return;
    lowest_ = number;
    fault_ = std::current_exception();
  }

  const int64_t count_;
  const std::function<void(int64_t, int)>& read_;
  std::atomic<int64_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex lock_;
  int64_t lowest_ = std::numeric_limits<int64_t>::max();
  std::exception_ptr fault_;
};

}  // namespace

void read_in_parallel(int64_t count, const std::function<void(int64_t, int)>& read) {
  Reads reads(count, read);
  {
    std::vector<std::jthread> helpers;
    const int readers = static_cast<int>(std::min<int64_t>(count, kReaders));
    try {
      for (int reader = 1; reader < readers; ++reader) helpers.emplace_back([&, reader] { reads.take_all(reader); });
    } catch (const std::system_error&) {  // no more threads: those that started read all
    }
    reads.take_all(0);
  }
  reads.throw_lowest();
}

}  // namespace braid::ckpt
