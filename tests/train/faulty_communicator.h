// A rank's communicator, and those that it is split into, that does something wrong in the sums and gathers of an op.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"

namespace braid::train {

enum class FaultKind {
  None,
  LeftOut,  // the rank keeps its own numbers
  Doubled,  // the rank has twice the result
};

// A fault in the calls of ops whose name begins with `op`.
struct Fault {
  std::string op = {};
  FaultKind kind = FaultKind::None;

  bool is_here() const { return kind != FaultKind::None && comm::CallName::current().text().starts_with(op); }
};

class FaultyCommunicator final : public Communicator {
 public:
  // `fault` is read at every call and outlives this.
  FaultyCommunicator(Communicator& inner, const Fault& fault) : inner_(inner), fault_(fault) {}
  FaultyCommunicator(std::unique_ptr<Communicator> inner, const Fault& fault)
      : own_(std::move(inner)), inner_(*own_), fault_(fault) {}

  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  const std::string& name() const override { return inner_.name(); }
  RankKind rank_kind() const override { return inner_.rank_kind(); }
  Queue& queue() override { return inner_.queue(); }

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    if (!fault_.is_here()) return inner_.all_reduce(tensor, op);
    const at::Tensor own = tensor.clone();
    inner_.all_reduce(tensor, op).wait_host();
    fault_.kind == FaultKind::LeftOut ? tensor.copy_(own) : tensor.mul_(2);
    return {};
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return doubled(out, inner_.reduce_scatter(out, in, op));
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return doubled(out, inner_.all_gather(out, in));
  }
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) override { return inner_.all_to_all(out, in); }
  Work broadcast(const at::Tensor& tensor, int root) override { return inner_.broadcast(tensor, root); }
  Work barrier() override { return inner_.barrier(); }
  Work batch(std::span<const P2p> transfers) override { return inner_.batch(transfers); }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return std::make_unique<FaultyCommunicator>(inner_.split(colour, key, std::move(name)), fault_);
  }
  std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) override {
    return inner_.make_channels(numbers, num_endpoints);
  }
  void abort(const std::string& why) override { inner_.abort(why); }

 private:
  Work doubled(const at::Tensor& out, Work work) const {
    if (!fault_.is_here() || fault_.kind != FaultKind::Doubled) return work;
    work.wait_host();
    out.mul_(2);
    return {};
  }

  const std::unique_ptr<Communicator> own_;
  Communicator& inner_;
  const Fault& fault_;
};

}  // namespace braid::train
