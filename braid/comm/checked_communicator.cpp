// Checks the rules of communicator.h for tensors and ranks.
#include "braid/comm/checked_communicator.h"

#include <functional>

#include "braid/base/text.h"
#include "braid/comm/local/combine.h"

namespace braid::comm {
namespace {

const char* begin_of(const at::Tensor& tensor) { return static_cast<const char*>(tensor.const_data_ptr()); }

bool overlap(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  const std::less<const char*> before;
  return before(begin_of(a), begin_of(b) + b.nbytes()) && before(begin_of(b), begin_of(a) + a.nbytes());
}

}  // namespace

CheckedCommunicator::CheckedCommunicator(Queue& queue, int size)
    : queue_(queue), identity_(size == 1 && dynamic_cast<HostQueue*>(&queue) != nullptr) {}

Work CheckedCommunicator::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  if (identity_ && !tensor.device().is_cpu()) return {};  // no code reads it, so any device is accepted
  require_usable(tensor, "all_reduce");
  require_combinable(tensor, "all_reduce");
  if (identity_) return {};
  return issue({CallKind::AllReduce, op, 0, tensor.scalar_type(), tensor.numel()}, tensor, tensor);
}

Work CheckedCommunicator::reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  require_chunks(in, out, "reduce_scatter");
  require_combinable(in, "reduce_scatter");
  return issue({CallKind::ReduceScatter, op, 0, in.scalar_type(), out.numel()}, in, out);
}

Work CheckedCommunicator::all_gather(const at::Tensor& out, const at::Tensor& in) {
  require_chunks(out, in, "all_gather");
  return issue({CallKind::AllGather, {}, 0, in.scalar_type(), in.numel()}, in, out);
}

Work CheckedCommunicator::all_to_all(const at::Tensor& out, const at::Tensor& in) {
  require_usable(out, "all_to_all");
  require_usable(in, "all_to_all");
  require(out.numel() == in.numel() && out.scalar_type() == in.scalar_type(), "all_to_all",
          "`out` must have the size and type of `in`");
  require(in.numel() % size() == 0, "all_to_all", cat(in.numel(), " elements are not ", size(), " equal chunks"));
  require(!overlap(out, in), "all_to_all", "`out` and `in` share memory");
  return issue({CallKind::AllToAll, {}, 0, in.scalar_type(), in.numel() / size()}, in, out);
}

Work CheckedCommunicator::broadcast(const at::Tensor& tensor, int root) {
  require(root >= 0 && root < size(), "broadcast", cat("root ", root, " is not a rank of a group of ", size()));
  if (identity_ && tensor.defined() && !tensor.device().is_cpu()) return {};  // no code reads it, as above
  require_usable(tensor, "broadcast");
  if (identity_) return {};
  return issue({CallKind::Broadcast, {}, root, tensor.scalar_type(), tensor.numel()}, tensor, tensor);
}

Work CheckedCommunicator::barrier() {
  if (identity_) return {};
  return issue({.kind = CallKind::Barrier}, {}, {});
}

Call CheckedCommunicator::numbered(const P2p& transfer) {
  return numbered({.kind = transfer.kind == P2p::Kind::Send ? CallKind::Send : CallKind::Receive,
                   .root = transfer.peer,
                   .type = transfer.tensor.scalar_type(),
                   .chunk = transfer.tensor.numel(),
                   .tag = transfer.tag});
}

void CheckedCommunicator::require_message(const P2p& transfer) const {
  require_usable(transfer.tensor, "batch");
  require(transfer.peer >= 0 && transfer.peer < size(), "batch",
          cat("peer ", transfer.peer, " is not a rank of a group of ", size()));
}

void CheckedCommunicator::require(bool holds, const char* op, const std::string& rule) const {
  if (!holds) refuse(cat(op, " on ", name()), cat(op, ": ", rule));
}

void CheckedCommunicator::require_usable(const at::Tensor& tensor, const char* op) const {
  require(tensor.defined(), op, "the tensor is undefined");
  require(tensor.device().is_cpu(), op, "the tensor is not on the CPU");
  require(tensor.is_contiguous(), op, "the tensor is not contiguous");
}

void CheckedCommunicator::require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const {
  require_usable(whole, op);
  require_usable(chunk, op);
  require(whole.scalar_type() == chunk.scalar_type(), op, "`out` and `in` differ in type");
  require(whole.numel() == chunk.numel() * size(), op,
          cat(whole.numel(), " elements are not ", size(), " chunks of ", chunk.numel()));
  const bool own = overlap(whole, chunk) && begin_of(chunk) == begin_of(whole) + rank() * chunk.nbytes();
  require(own || !overlap(whole, chunk), op, cat("`out` and `in` share memory that is not chunk ", rank()));
}

void CheckedCommunicator::require_combinable(const at::Tensor& tensor, const char* op) const {
  require(comm::local::combine_of(tensor.scalar_type(), ReduceOp::Sum) != nullptr, op,
          cat("cannot combine ", c10::toString(tensor.scalar_type())));
}

}  // namespace braid::comm
