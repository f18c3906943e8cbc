// A rank's communicator, and those that it is split into, some of whose calls a test changes.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/comm/communicator.h"

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

  std::map<std::string, int> calls;  // by kind and group
};

class ChangedCommunicator final : public Communicator {
 public:
  ChangedCommunicator(Communicator& inner, CallChanges& changes) : inner_(inner), changes_(changes) {}
  ChangedCommunicator(std::unique_ptr<Communicator> inner, CallChanges& changes)
      : own_(std::move(inner)), inner_(*own_), changes_(changes) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  RankKind rank_kind() const override { return inner_.rank_kind(); }
  Queue& queue() override { return inner_.queue(); }
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    return changes_.all_reduce ? changes_.all_reduce(call("all_reduce "), tensor, op) : inner_.all_reduce(tensor, op);
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return changes_.reduce_scatter ? changes_.reduce_scatter(call("reduce_scatter "), out, in)
                                   : inner_.reduce_scatter(out, in, op);
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return changes_.all_gather ? changes_.all_gather(call("all_gather "), out, in) : inner_.all_gather(out, in);
  }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override { return inner_.all_to_all(out, in); }
  Work broadcast(const at::Tensor& tensor, int root) override { return inner_.broadcast(tensor, root); }
  Work barrier() override { return inner_.barrier(); }
  Work batch(std::span<const P2p> transfers) override {
    if (!changes_.batch) return inner_.batch(transfers);
    return changes_.batch(call("batch "), {transfers.begin(), transfers.end()});
  }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return std::make_unique<ChangedCommunicator>(inner_.split(colour, key, std::move(name)), changes_);
  }
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override {
    return inner_.make_channels(numbers, num_endpoints);
  }
  void abort(const std::string& why) override { inner_.abort(why); }

 private:
  CallChanges::Call call(const std::string& kind) { return {inner_, name(), changes_.calls[kind + name()]++}; }

  const std::unique_ptr<Communicator> own_;
  Communicator& inner_;
  CallChanges& changes_;
};

}  // namespace braid::verify
