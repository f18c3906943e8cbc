// A rank's communicator, and those that it is split into, that does something wrong in the sums and gathers of an op.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "braid/comm/op_name.h"
#include "tests/support/wrapped_communicator.h"

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

class FaultyCommunicator final : public WrappedCommunicator {
 public:
  // `fault` is read at every call and outlives this.
  FaultyCommunicator(Communicator& inner, const Fault& fault) : WrappedCommunicator(inner), fault_(fault) {}
  FaultyCommunicator(std::unique_ptr<Communicator> inner, const Fault& fault)
      : WrappedCommunicator(std::move(inner)), fault_(fault) {}

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) override {
    if (!fault_.is_here()) return inner().all_reduce(tensor, op);
    const at::Tensor own = tensor.clone();
    inner().all_reduce(tensor, op).wait_host();
    fault_.kind == FaultKind::LeftOut ? tensor.copy_(own) : tensor.mul_(2);
    return {};
  }
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) override {
    return doubled(out, inner().reduce_scatter(out, in, op));
  }
  Work all_gather(const at::Tensor& out, const at::Tensor& in) override {
    return doubled(out, inner().all_gather(out, in));
  }
  std::unique_ptr<Communicator> split(int colour, int key, std::string name) override {
    return std::make_unique<FaultyCommunicator>(inner().split(colour, key, std::move(name)), fault_);
  }

 private:
  Work doubled(const at::Tensor& out, Work work) const {
    if (!fault_.is_here() || fault_.kind != FaultKind::Doubled) return work;
    work.wait_host();
    out.mul_(2);
    return {};
  }

  const Fault& fault_;
};

}  // namespace braid::train
