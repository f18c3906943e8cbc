// Transfers by threads that block in the system.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "braid/base/clock.h"
#include "braid/base/started_thread.h"
#include "braid/disk/transfer_queue.h"

namespace braid::disk {
namespace {

Completion carry_out(const Transfer& transfer) {
  const ssize_t result = transfer.direction == Direction::Read
                             ? ::pread(transfer.file, transfer.memory, transfer.bytes, transfer.offset)
                             : ::pwrite(transfer.file, transfer.memory, transfer.bytes, transfer.offset);
  return {transfer.id, result < 0 ? -errno : result, now_seconds()};
}

class ThreadQueue final : public TransferQueue {
 public:
  explicit ThreadQueue(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.push_back(started_thread<std::jthread>("a disk", [this](const std::stop_token& stop) { work(stop); }));
    }
  }

  void submit(const Transfer& transfer) override {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(transfer);
    submitted_.notify_one();
  }

  Completion next() override {
    std::unique_lock lock(mutex_);
    ended_.wait(lock, [&] { return !completions_.empty(); });
    const Completion first = completions_.front();
    completions_.pop_front();
    return first;
  }

 private:
  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    while (submitted_.wait(lock, stop, [&] { return !waiting_.empty(); })) {
      const Transfer transfer = waiting_.front();
      waiting_.pop_front();
      lock.unlock();
      const Completion completion = carry_out(transfer);
      lock.lock();
      completions_.push_back(completion);
      ended_.notify_one();
    }
  }

  std::mutex mutex_;
  std::condition_variable_any submitted_;
  std::condition_variable ended_;
  std::deque<Transfer> waiting_;
  std::deque<Completion> completions_;
  std::vector<std::jthread> threads_;  // last: they stop before the rest is destroyed
};

}  // namespace

std::unique_ptr<TransferQueue> make_thread_queue(int threads) { return std::make_unique<ThreadQueue>(threads); }

}  // namespace braid::disk
