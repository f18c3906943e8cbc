// The rules of communicator.h that every backend of CPU ranks enforces before a call is issued. A group of one rank
// answers here where nothing has to be done.
#pragma once

#include <string>

#include "braid/comm/call.h"
#include "braid/comm/communicator.h"

namespace braid::comm {

class CheckedCommunicator : public Communicator {
 public:
  Queue& queue() final { return queue_; }

  Work all_reduce(const at::Tensor& tensor, ReduceOp op) final;
  Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) final;
  Work all_gather(const at::Tensor& out, const at::Tensor& in) final;
  Work all_to_all(const at::Tensor& out, const at::Tensor& in) final;
  Work broadcast(const at::Tensor& tensor, int root) final;
  Work barrier() final;

 protected:
  // `queue` outlives this.
  CheckedCommunicator(Queue& queue, int size);

  // A call that has passed the checks.
  virtual Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) = 0;
  // Poisons the world in the name of this rank and throws. `op` is "broadcast on world".
  [[noreturn]] virtual void refuse(const std::string& op, const std::string& why) const = 0;

  void require_message(const P2p& transfer) const;

 private:
  void require(bool holds, const char* op, const std::string& rule) const;
  void require_usable(const at::Tensor& tensor, const char* op) const;
  void require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const;
  void require_combinable(const at::Tensor& tensor, const char* op) const;

  Queue& queue_;
  const bool identity_;  // one rank on a HostQueue: calls that change nothing are done at once
};

}  // namespace braid::comm
