// A rank's communicator, and those that it is split into, some of whose calls a test changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/wrapped_communicator.h"

namespace braid::verify {

// Makes a call, or something else in its place. `number` counts the calls of this kind in groups of this name.
struct CallChanges {
  struct Call {
    Communicator& inner;
    std::string group;
    int number;
    bool is(const std::string& name, int n) const { return group == name && number == n; }
  };
  std::function<Work(const Call&, const at::Tensor&, ReduceOp)> all_reduce;
  std::function<Work(const Call&, const at::Tensor& out, const at::Tensor& in)> reduce_scatter;
  std::function<Work(const Call&, const at::Tensor& out, const at::Tensor& in)> all_gather;
  std::function<Work(const Call&, std::vector<P2p>)> batch;
  std::function<int(const std::string& group, int rank)> rank;  // the rank that a group gives for a rank

  std::map<std::string, int> calls;  // by kind and group
};

class ChangedCommunicator final : public WrappedCommunicator {
 public:
  ChangedCommunicator(Communicator& inner, CallChanges& changes) : WrappedCommunicator(inner), changes_(changes) {}
  ChangedCommunicator(std::unique_ptr<Communicator> inner, CallChanges& changes)
      : WrappedCommunicator(std::move(inner)), changes_(changes) {}

  int rank() const override { return changes_.rank ? changes_.rank(name(), inner().rank()) : inner().rank(); }
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    return changes_.all_reduce ? changes_.all_reduce(call("all_reduce "), tensor, op) : inner().all_reduce(tensor, op);
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return changes_.reduce_scatter ? changes_.reduce_scatter(call("reduce_scatter "), out, in)
                                   : inner().reduce_scatter(out, in, op);
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return changes_.all_gather ? changes_.all_gather(call("all_gather "), out, in) : inner().all_gather(out, in);
  }
  Work batch(std::span<const P2p> transfers) override {
    if (!changes_.batch) return inner().batch(transfers);
    return changes_.batch(call("batch "), {transfers.begin(), transfers.end()});
  }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return std::make_unique<ChangedCommunicator>(inner().split(colour, key, std::move(name)), changes_);
  }

 private:
  CallChanges::Call call(const std::string& kind) { return {inner(), name(), changes_.calls[kind + name()]++}; }

  CallChanges& changes_;
};

}  // namespace braid::verify
