// Checks the rules of communicator.h before a call is issued, for every backend of CPU ranks. Calls in a group of one
// rank that have no effect are completed here.
#pragma once

#include <c10/core/ScalarType.h>

#include <cstdint>
#include <string>

#include "braid/comm/communicator.h"

namespace braid::comm {

// The arguments of a collective that all ranks of a group must agree on, and their text form. They are the same for
// every backend.
enum class CallKind { AllReduce, ReduceScatter, AllGather, AllToAll, Broadcast, Barrier, Split, Share };

struct Call {
  CallKind kind = CallKind::Barrier;
  ReduceOp op = ReduceOp::Sum;
  int root = 0;  // root of broadcast and share
  at::ScalarType type = at::kByte;
  int64_t chunk = 0;  // number of elements: in the whole tensor (all_reduce, broadcast), else in one rank's chunk

  bool operator==(const Call&) const = default;
};

// Returns "all_reduce(Float[100], sum)".
std::string text(const Call& call);
// Returns "all_reduce".
std::string name_of(CallKind kind);

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

  // Issues a call that has passed the checks.
  virtual Work issue(const Call& call, const at::Tensor& in, const at::Tensor& out) = 0;
  // Aborts the world, with this rank at fault, and throws CommError. Example of `op`: "broadcast on world".
  [[noreturn]] virtual void refuse(const std::string& op, const std::string& why) const = 0;

  void require_message(const P2p& transfer) const;

 private:
  void require(bool holds, const char* op, const std::string& rule) const;
  void require_usable(const at::Tensor& tensor, const char* op) const;
  void require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const;
  void require_combinable(const at::Tensor& tensor, const char* op) const;

  Queue& queue_;
  const bool identity_;  // true for one rank on a HostQueue: calls without effect complete at once
};

}  // namespace braid::comm
