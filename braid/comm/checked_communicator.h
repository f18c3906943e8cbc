// Checks the rules of communicator.h before a call is issued, for every backend of CPU ranks. Calls in a group of one
// rank that have no effect are completed here.
#pragma once

#include <cstdint>
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
  // REQUIRES: `queue` outlives this.
  CheckedCommunicator(Queue& queue, int size);

  // Issues a call that has passed the checks. It has neither number nor name yet.
  virtual Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) = 0;
  // Aborts the world, with this rank at fault, and throws CommError. Example of `op`: "broadcast on world".
  [[noreturn]] virtual void refuse(const std::string& op, const std::string& why) const = 0;

  void require_message(const P2p& transfer) const;
  // Returns the call with its number and the name of the thread's calls.
  Call numbered(Call call) {
    call.number = call.is_transfer() ? next_batch_ : next_number_++;
    call.name = CallName::current();
    return call;
  }
  // Returns a transfer of the current batch as a call.
  Call numbered(const P2p& transfer);
  void end_batch() { ++next_batch_; }

 private:
  void require(bool holds, const char* op, const std::string& rule) const;
  void require_usable(const at::Tensor& tensor, const char* op) const;
  void require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const;
  void require_combinable(const at::Tensor& tensor, const char* op) const;

  Queue& queue_;
  int64_t next_number_ = 0, next_batch_ = 0;
  const bool identity_;  // true for one rank on a HostQueue: calls without effect complete at once
};

}  // namespace braid::comm
