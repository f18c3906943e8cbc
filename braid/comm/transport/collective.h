// A collective of process ranks: the rounds it is cut into, and what a member sends and receives in each. How the bytes
// move is up to the group's CollectiveQueue.
//
// A round exchanges a stretch of the elements of each chunk between all members:
//
//   kind             sends to member m             receives from member m  and then
//   all_reduce
//     Whole          the stretch                   an input                combines the inputs
//     Shares         share m of the stretch        an input                combines its own share, sends it to all, and
//                                                                          receives share m of the result from m
//     Transport      nothing                       nothing                 the transport sums (OwnAllReduce)
//   reduce_scatter   the stretch of chunk m        an input                combines the inputs
//   all_to_all       the stretch of chunk m        chunk m of `out`
//   all_gather,
//     split          the stretch                   chunk m of `out`
//   broadcast        the root: the stretch         from the root: `out`
//   barrier          nothing                       nothing
//
// With Algorithm::TwoLevels, all_reduce, reduce_scatter and all_gather exchange node by node (two_levels.h).
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "braid/comm/checked_communicator.h"
#include "braid/comm/local/combine.h"
#include "braid/comm/transport/operation.h"

namespace braid::comm::transport {

class Collective;

// The collectives of one rank in one group, in the order of its calls. Thread-safe.
class CollectiveQueue {
 public:
  enum class Algorithm { Whole, Shares, TwoLevels, Transport };
  struct Cut {
    Algorithm algorithm;  // Whole for all kinds that have only one
    int64_t capacity;     // elements of a chunk in a round, at least 1
  };

  explicit CollectiveQueue(std::shared_ptr<const Group> group) : group_(std::move(group)) {}
  virtual ~CollectiveQueue() = default;

  const std::shared_ptr<const Group>& group() const { return group_; }
  // The same on all members.
  virtual Cut cut(const Call& call) const = 0;
  // The rank has come to its next collective.
  virtual void add(std::shared_ptr<Collective> collective) = 0;
  // Starts everything that was added, without limits of memory.
  virtual void start_all() = 0;
  // Returns true if no collective is in flight, or none that will ever be done.
  virtual bool idle() const = 0;
  // Returns true if peers may still need the queue after its last collective.
  virtual bool needed_by_peers() const { return false; }
  virtual Stall stall(const Collective& collective) const = 0;
  // Returns the last collective of a member, by its world rank, of which data have come; nothing if there is none.
  virtual std::optional<Call> last_call_of(int world_rank) const = 0;
  // After Transport::stop(): nothing touches a tensor any more, and what is not done never will be.
  virtual void stop() = 0;

 private:
  const std::shared_ptr<const Group> group_;
};

class Collective final : public Operation {
 public:
  static constexpr int64_t kCacheLine = 64;  // bytes

  struct Stretch {
    int64_t first, count;  // elements of a chunk
  };
  struct Share {
    int64_t begin, end;  // elements of a stretch
  };
  struct Bytes {
    std::byte* data;
    int64_t count;
  };

  // Reads `in` and writes `out`, and keeps both alive until it is done.
  Collective(std::shared_ptr<CollectiveQueue> queue, const Call& call, const at::Tensor& in, const at::Tensor& out);

  const Group& group() const { return *group_; }
  const Call& call() const { return call_; }
  int64_t number() const { return call_.number; }
  int64_t num_rounds() const { return num_rounds_; }
  CollectiveQueue::Algorithm algorithm() const { return cut_.algorithm; }
  const at::Tensor& out() const { return tensors_[1]; }
  int64_t stretch_bytes() const { return cut_.capacity * element_bytes_; }  // of a full round

  bool by_shares() const { return algorithm() == CollectiveQueue::Algorithm::Shares; }
  bool by_transport() const { return algorithm() == CollectiveQueue::Algorithm::Transport; }
  // Returns true if what members send first is the input of a combination.
  bool combines() const;
  // Returns true if a member sends each member something else.
  bool sends_parts() const;

  Stretch stretch(int64_t round) const;
  // Shares begin at cache lines.
  Share share(const Stretch& stretch, int member) const;
  // Bytes that this rank sends `member` first. For its own rank: what it contributes itself.
  Bytes sent_first(const Stretch& stretch, int member) const;
  // Bytes that this rank receives from `member` first, and where in `out` they go; null if they are an input.
  Bytes received_first(const Stretch& stretch, int member) const;
  // `member`'s share of the result, in `out`.
  Bytes result(const Stretch& stretch, int member) const;
  // The stretch of `out`, which is as long as a chunk.
  Bytes output(const Stretch& stretch) const { return {out_at(stretch.first), stretch.count * element_bytes_}; }
  // Combines `inputs`, by member; this rank's own is its tensor. Writes the result to `out`, and to `copy` if not null.
  void combine(const Stretch& stretch, std::span<const void*> inputs, std::byte* copy = nullptr) const;
  // Copies this rank's own chunk from `in` to `out`, if the collective has one.
  void copy_own(const Stretch& stretch) const;

  // Called by the queue when all rounds are done.
  void complete();

  std::string label() const override;
  Stall stall() const override;
  std::optional<Call> last_call_of(int world_rank) const override { return queue_->last_call_of(world_rank); }
  std::vector<std::string> calls() const override { return group_->log->lines(); }

 private:
  std::byte* in_at(int64_t element) const { return const_cast<std::byte*>(in_) + element * element_bytes_; }
  std::byte* out_at(int64_t element) const { return out_ + element * element_bytes_; }

  const std::shared_ptr<CollectiveQueue> queue_;
  const std::shared_ptr<const Group> group_;
  const Call call_;
  const local::Combine combine_;
  const int64_t element_bytes_;
  const CollectiveQueue::Cut cut_;
  const int64_t num_rounds_;
  at::Tensor tensors_[2];
  const std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

}  // namespace braid::comm::transport
