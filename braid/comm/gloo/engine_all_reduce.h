// All-reduces with the sums of Gloo itself: one after another on a thread, over connections of the group's own that the
// first of them makes. That members agree on them has been seen to before.
#pragma once

#include <ATen/core/Tensor.h>

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "braid/comm/gloo/engine.h"

namespace braid::comm::gloo {

// Thread-safe.
class EngineAllReduce {
 public:
  using Connect = std::function<std::unique_ptr<Engine>()>;  // throws EngineError
  // `failed` is called on the thread, at most once, and by the closing of connections too. Throws RunError when the
  // thread cannot be started.
  EngineAllReduce(Connect connect, std::function<void(const std::string& why)> failed);
  // Waits for connecting to end, where that is under way.
  ~EngineAllReduce();

  void add(const at::Tensor& tensor, std::function<void()> done);
  // Closes the connections and waits until the thread touches no tensor.
  void stop();

 private:
  struct Sum {
    at::Tensor tensor;
    std::function<void()> done;
  };

  void run();
  std::optional<Sum> next();

  const Connect connect_;
  const std::function<void(const std::string&)> failed_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Sum> sums_;
  bool stopping_ = false, summing_ = false;
  std::unique_ptr<Engine> engine_;
  std::thread thread_;
};

}  // namespace braid::comm::gloo
