// Checks, numbers and issues a rank's calls; the Work that it hands back.
#include "braid/comm/local/local_communicator.h"

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid {
namespace {

// A rank's part of some operations.
class LocalWork final : public Work::State, public std::enable_shared_from_this<LocalWork> {
 public:
  struct Part {
    std::shared_ptr<Operation> operation;
    int party;
  };

  explicit LocalWork(std::vector<Part> parts) : parts_(std::move(parts)) {}

  void order_before(Queue& queue) override {
    if (dynamic_cast<HostQueue*>(&queue)) return wait_host();
    // A failure has poisoned the world by then, so the rank meets it at its next wait_host().
    queue.enqueue([self = shared_from_this(), task = queued(queue), &queue] {
      try {
        self->wait(&queue);
      } catch (const CommError&) {
      }
    });
  }

  void wait_host() override { wait(nullptr); }

  bool done() const override {
    for (const Part& part : parts_) {
      if (!part.operation->poll(part.party)) return false;
    }
    return true;
  }

  void arrive() {
    for (const Part& part : parts_) part.operation->arrive(part.party);
  }

  // A task of `queue`, to be known to the world until it has run.
  std::shared_ptr<void> queued(const Queue& queue) const {
    const Part& part = parts_.front();
    return part.operation->fate().queued(part.operation->world_rank(part.party), queue);
  }

 private:
  void wait(const Queue* on) {
    for (const Part& part : parts_) part.operation->wait(part.party, issued_, on);
  }

  const std::vector<Part> parts_;
  const double issued_ = now_seconds();
};

Work publish(Queue& queue, std::vector<LocalWork::Part> parts) {
  auto work = std::make_shared<LocalWork>(std::move(parts));
  if (dynamic_cast<HostQueue*>(&queue)) {
    work->arrive();
  } else {
    queue.enqueue([work, task = work->queued(queue)] { work->arrive(); });
  }
  return Work(work);
}

}  // namespace

LocalCommunicator::LocalCommunicator(std::shared_ptr<Group> group, int rank, Queue& queue)
    : group_(std::move(group)),
      rank_(rank),
      queue_(queue),
      identity_(size() == 1 && dynamic_cast<HostQueue*>(&queue) != nullptr) {}

Work LocalCommunicator::all_reduce(const at::Tensor& tensor, ReduceOp op) {
  if (identity_ && !tensor.device().is_cpu()) return {};  // nobody reads it, so it may be anywhere
  require_usable(tensor, "all_reduce");
  require(combine_of(tensor.scalar_type(), op) != nullptr, "all_reduce",
          cat("cannot combine ", c10::toString(tensor.scalar_type())));
  if (identity_) return {};
  return issue({Kind::AllReduce, op, 0, tensor.scalar_type(), tensor.numel()}, tensor, tensor);
}

Work LocalCommunicator::reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) {
  require_chunks(in, out, "reduce_scatter");
  require(combine_of(in.scalar_type(), op) != nullptr, "reduce_scatter",
          cat("cannot combine ", c10::toString(in.scalar_type())));
  return issue({Kind::ReduceScatter, op, 0, in.scalar_type(), out.numel()}, in, out);
}

Work LocalCommunicator::all_gather(const at::Tensor& out, const at::Tensor& in) {
  require_chunks(out, in, "all_gather");
  return issue({Kind::AllGather, {}, 0, in.scalar_type(), in.numel()}, in, out);
}

Work LocalCommunicator::all_to_all(const at::Tensor& out, const at::Tensor& in) {
  require_usable(out, "all_to_all");
  require_usable(in, "all_to_all");
  require(out.numel() == in.numel() && out.scalar_type() == in.scalar_type(), "all_to_all",
          "`out` must have the size and type of `in`");
  require(in.numel() % size() == 0, "all_to_all", cat(in.numel(), " elements are not ", size(), " equal chunks"));
  return issue({Kind::AllToAll, {}, 0, in.scalar_type(), in.numel() / size()}, in, out);
}

Work LocalCommunicator::broadcast(const at::Tensor& tensor, int root) {
  require_usable(tensor, "broadcast");
  require(root >= 0 && root < size(), "broadcast", cat("root ", root, " is not a rank of a group of ", size()));
  if (identity_) return {};
  return issue({Kind::Broadcast, {}, root, tensor.scalar_type(), tensor.numel()}, tensor, tensor);
}

Work LocalCommunicator::barrier() {
  if (identity_) return {};
  return issue({.kind = Kind::Barrier}, {}, {});
}

Work LocalCommunicator::batch(std::span<const P2p> transfers) {
  std::vector<LocalWork::Part> parts;
  for (const P2p& transfer : transfers) {
    require_usable(transfer.tensor, "batch");
    require(transfer.peer >= 0 && transfer.peer < size(), "batch",
            cat("peer ", transfer.peer, " is not a rank of a group of ", size()));
    Group::Posted posted = group_->post(rank_, transfer);
    parts.push_back({posted.transfer, posted.party});
  }
  return parts.empty() ? Work() : publish(queue_, std::move(parts));
}

std::unique_ptr<Communicator> LocalCommunicator::split(int colour, int key, std::string name) {
  auto call = std::static_pointer_cast<SplitCall>(group_->join(rank_, next_number_++, {.kind = Kind::Split}));
  call->wish(rank_, {colour, key, std::move(name)});
  call->arrive(rank_);
  call->wait(rank_, now_seconds());
  const SplitCall::Place& place = call->place(rank_);
  return std::make_unique<LocalCommunicator>(place.group, place.rank, queue_);
}

void LocalCommunicator::abort(const std::string& why) {
  int world_rank = group_->members().world_ranks[rank_];
  group_->members().fate->fail({world_rank, world_rank, why});
}

Work LocalCommunicator::issue(const Call& call, const at::Tensor& in, const at::Tensor& out) {
  std::shared_ptr<Collective> collective = group_->join(rank_, next_number_++, call);
  collective->attach(rank_, in, out);
  return publish(queue_, {{std::move(collective), rank_}});
}

void LocalCommunicator::require(bool holds, const char* op, const std::string& rule) const {
  if (!holds) group_->refuse(rank_, cat(op, " on ", name()), cat(op, ": ", rule));
}

void LocalCommunicator::require_usable(const at::Tensor& tensor, const char* op) const {
  require(tensor.defined(), op, "the tensor is undefined");
  require(tensor.device().is_cpu(), op, "the tensor is not on the CPU");
  require(tensor.is_contiguous(), op, "the tensor is not contiguous");
}

void LocalCommunicator::require_chunks(const at::Tensor& whole, const at::Tensor& chunk, const char* op) const {
  require_usable(whole, op);
  require_usable(chunk, op);
  require(whole.scalar_type() == chunk.scalar_type(), op, "`out` and `in` differ in type");
  require(whole.numel() == chunk.numel() * size(), op,
          cat(whole.numel(), " elements are not ", size(), " chunks of ", chunk.numel()));
}

}  // namespace braid
