// A queue with a thread of its own that runs each task a little later: what a GPU stream is to a rank.
// It does not reorder, and it knows nothing of the tasks.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "braid/base/seeds.h"
#include "braid/comm/queue.h"

namespace braid {

class DelayedQueue final : public Queue {
 public:
  // Delays are uniform in [0, max_delay_seconds), drawn from `seed`.
  explicit DelayedQueue(uint64_t seed, double max_delay_seconds = 100e-6)
      : seed_(seed), max_delay_seconds_(max_delay_seconds), worker_([this] { run(); }) {}

  // Runs what is still there.
  ~DelayedQueue() override {
    {
      std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }

  void enqueue(std::function<void()> task) override {
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_all();
  }

  // Also rethrows the first exception that left a task.
  void drain() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return tasks_.empty() && !busy_; });
    if (error_) std::rethrow_exception(std::exchange(error_, nullptr));
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (uint64_t count = 0;; ++count) {
      changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
      if (tasks_.empty()) return;
      std::function<void()> task = std::move(tasks_.front());
      tasks_.pop_front();
      busy_ = true;
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::duration<double>(max_delay_seconds_ * uniform(seed_, count)));
      std::exception_ptr error = attempt(task);
      task = nullptr;
      lock.lock();
      busy_ = false;
      if (error && !error_) error_ = error;
      if (tasks_.empty()) changed_.notify_all();
    }
  }

  static std::exception_ptr attempt(const std::function<void()>& task) {
    try {
      task();
    } catch (...) {
      return std::current_exception();
    }
    return nullptr;
  }

  const uint64_t seed_;
  const double max_delay_seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  std::exception_ptr error_;
  bool busy_ = false;
  bool closing_ = false;
  std::thread worker_;
};

}  // namespace braid
