// All-reduces in Gloo's order of sums. A thread runs them one after another. The group has its own connections for
// them, which the first all-reduce makes.
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

#include "braid/comm/gloo/gloo_wire.h"
#include "braid/comm/transport/transport.h"

namespace braid::comm::gloo {

// Thread-safe.
class GlooAllReduce final : public transport::OwnAllReduce {
 public:
  using Connect = std::function<std::unique_ptr<GlooWire>()>;  // throws WireError
  // `failed` is called on the thread, at most once, also when the connections are closed. Throws RunError if the system
  // has no thread for it.
  GlooAllReduce(Connect connect, std::function<void(const std::string& why)> failed);
  // Waits for the end of connecting if that is under way.
  ~GlooAllReduce() override;

  void add(const at::Tensor& tensor, std::function<void()> done) override;
  void stop() override;  // within some 3 s: GlooWire::sum()

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
  std::unique_ptr<GlooWire> wire_;
  std::thread thread_;
};

}  // namespace braid::comm::gloo
