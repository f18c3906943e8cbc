// A rank's communicator, and those that it is split into, after one of whose calls something happens: the rank throws,
// say. The call itself is done by then.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "tests/support/wrapped_communicator.h"

namespace braid {

// Counts the calls of a rank, over all its groups.
struct CallCount {
  int calls = 0;
  int fails_after = -1;  // this many
  std::function<void()> fail = nullptr;
  std::function<void()> called = nullptr;  // at each call

  void add() {
    if (called) called();
    if (++calls == fails_after) fail();
  }
};

class FailingCommunicator final : public WrappedCommunicator {
 public:
  FailingCommunicator(Communicator& inner, CallCount& count) : WrappedCommunicator(inner), count_(count) {}
  FailingCommunicator(std::unique_ptr<Communicator> inner, CallCount& count)
      : WrappedCommunicator(std::move(inner)), count_(count) {}

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override { return counted(inner().all_reduce(tensor, op)); }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return counted(inner().reduce_scatter(out, in, op));
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override { return counted(inner().all_gather(out, in)); }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override { return counted(inner().all_to_all(out, in)); }
  Work broadcast(const at::Tensor& tensor, int root) override { return counted(inner().broadcast(tensor, root)); }
  Work barrier() override { return counted(inner().barrier()); }
  Work batch(std::span<const P2p> transfers) override { return counted(inner().batch(transfers)); }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    auto part = std::make_unique<FailingCommunicator>(inner().split(colour, key, std::move(name)), count_);
    count_.add();
    return part;
  }
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override {
    auto channels = inner().make_channels(numbers, num_endpoints);
    count_.add();
    return channels;
  }

 private:
  Work counted(Work work) {
    if (count_.calls + 1 == count_.fails_after) work.wait_host();
    count_.add();
    return work;
  }

  CallCount& count_;
};

}  // namespace braid
