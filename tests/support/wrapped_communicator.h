// A communicator that passes each call on to another one. Tests override the calls that they count or change.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "braid/comm/communicator.h"

namespace braid {

class WrappedCommunicator : public Communicator {
 public:
  explicit WrappedCommunicator(Communicator& inner) : inner_(inner) {}
  explicit WrappedCommunicator(std::unique_ptr<Communicator> inner) : own_(std::move(inner)), inner_(*own_) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  RankKind rank_kind() const override { return inner_.rank_kind(); }
  Queue& queue() override { return inner_.queue(); }
  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override { return inner_.all_reduce(tensor, op); }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return inner_.reduce_scatter(out, in, op);
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override { return inner_.all_gather(out, in); }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override { return inner_.all_to_all(out, in); }
  Work broadcast(const at::Tensor& tensor, int root) override { return inner_.broadcast(tensor, root); }
  Work barrier() override { return inner_.barrier(); }
  Work batch(std::span<const P2p> transfers) override { return inner_.batch(transfers); }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return inner_.split(colour, key, std::move(name));
  }
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override {
    return inner_.make_channels(numbers, num_endpoints);
  }
  void abort(const std::string& why) override { inner_.abort(why); }

 protected:
  Communicator& inner() const { return inner_; }

 private:
  const std::unique_ptr<Communicator> own_;
  Communicator& inner_;
};

}  // namespace braid
