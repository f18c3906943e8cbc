// The order of a rank's tensor operations: the calling thread on a CPU, a stream on a GPU.
#pragma once

#include <functional>

namespace braid {

// A queue of tasks, which run in the order they were enqueued. REQUIRES: only the rank's own thread enqueues.
class Queue {
 public:
  virtual ~Queue() = default;
  // Runs `task` after everything enqueued so far. May return before it has run.
  virtual void enqueue(std::function<void()> task) = 0;
  // Blocks the calling thread until everything enqueued so far has run.
  virtual void drain() = 0;
};

// A CPU rank's queue: enqueue() runs the task at once.
class HostQueue final : public Queue {
 public:
  void enqueue(std::function<void()> task) override { task(); }
  void drain() override {}
};

}  // namespace braid
