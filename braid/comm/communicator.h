// A group of ranks that exchange tensors. A rank receives its communicators from its caller; there is no global group.
//
// Order of calls: all ranks of a group issue the same collectives in the same order, for the same ops (op_name.h). A
// rank makes all its calls from its own thread; any thread may wait for a Work. Point-to-point batches match by
// (sender, receiver, tag) in issue order and are independent of the collectives. Every call returns without waiting for
// the other ranks.
//
// Tensors: a Work keeps its tensors alive. A thread or queue must not write inputs, or read or write outputs, before it
// is ordered after the Work (wait_host(), order_before()). Tensors are contiguous and of equal size and type on all
// ranks; otherwise CommError names the rank and the operation. In a group of size 1 every operation is the identity.
//
// Sums combine in a fixed order, which depends neither on the size of the tensor nor on timing. The order is a balanced
// binary tree over ranks,
//   ((r0 + r1) + (r2 + r3)) + ((r4 + r5) + (r6 + r7)),
// left-complete if the count is not a power of two. bfloat16 and float16 sums are formed in float32 and rounded once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/comm/channel.h"
#include "braid/comm/queue.h"

namespace braid::comm {
class RankActivity;
}  // namespace braid::comm

namespace braid {

enum class ReduceOp { Sum, Max, Min };

// The kind of a rank. Thread ranks share everything that a process has only once, such as the default random generator.
enum class RankKind { Thread, Process };

// An operation in flight. Copies refer to the same operation. A default Work is done.
class Work {
 public:
  class State {
   public:
    virtual ~State() = default;
    virtual void order_before(Queue& queue) = 0;
    virtual void wait_host() = 0;
    virtual bool done() const = 0;
  };

  Work() = default;
  explicit Work(std::shared_ptr<State> state) : state_(std::move(state)) {}

  // Makes everything that is enqueued on `queue` from now on see the result. Blocks if `queue` is a HostQueue.
  void order_before(Queue& queue) {
    if (state_) state_->order_before(queue);
  }
  // Blocks the calling thread until the result is available. Throws CommError at the group's deadline, or if the group
  // is aborted. If ranks are threads of one process, also throws as soon as all of them wait and none can continue
  // (local/run_ranks.h).
  void wait_host() {
    if (state_) state_->wait_host();
  }
  bool done() const { return !state_ || state_->done(); }

 private:
  std::shared_ptr<State> state_;
};

struct P2p {
  enum class Kind { Send, Recv };
  Kind kind;
  at::Tensor tensor;  // tensor whose storage is read (Send) or written (Recv) until the Work is done
  int peer;           // rank in this communicator
  int tag;            // messages match by tag, in order within a tag
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const std::string& name() const = 0;  // name in messages: "world", "tensor"
  virtual RankKind rank_kind() const = 0;
  // Returns the record of this rank's activity (rank_activity.h); null if activity is not recorded.
  virtual comm::RankActivity* activity() { return nullptr; }
  // Returns the group of the same ranks for CPU tensors: this group, unless it is for tensors of a device.
  virtual Communicator& host() { return *this; }
  // Returns the bytes of messages that this rank has sent to other hosts, in all groups of the world. An engine's own
  // all-reduce (comm::ReductionOrder) is not counted.
  virtual int64_t bytes_across_hosts() const { return 0; }
  // Returns the queue of this rank. An operation reads its inputs after all tasks that were enqueued before the call.
  virtual Queue& queue() = 0;

  // Works in place. When the Work is done, every rank's `tensor` holds the combination of all.
  virtual Work all_reduce(const at::Tensor& tensor, ReduceOp op) = 0;
  // `in` has size() equal chunks along its flattened elements. `out` receives chunk rank() combined over all ranks.
  // `out` may be a view of chunk rank() of `in`; otherwise they share no memory.
  virtual Work reduce_scatter(const at::Tensor& out, const at::Tensor& in, ReduceOp op) = 0;
  // `out` has size() equal chunks; chunk r receives rank r's `in`. `in` may be a view of chunk rank() of `out`;
  // otherwise they share no memory.
  virtual Work all_gather(const at::Tensor& out, const at::Tensor& in) = 0;
  // Chunk r of `in` becomes chunk rank() of rank r's `out`. `in` and `out` share no memory.
  virtual Work all_to_all(const at::Tensor& out, const at::Tensor& in) = 0;
  virtual Work broadcast(const at::Tensor& tensor, int root) = 0;
  virtual Work barrier() = 0;
  // Starts all transfers at once, without an order among them. The Work is done when all of them are.
  virtual Work batch(std::span<const P2p> transfers) = 0;

  // Forms a group of all ranks with the same colour, ordered by key, then by rank. Collective, blocks. `name` is for
  // messages.
  virtual std::unique_ptr<Communicator> split(int colour, int key, std::string name) = 0;

  // Makes a channel (channel.h) with `num_endpoints` endpoints. Returns the endpoints in `numbers`, which is ascending
  // and disjoint from that of other ranks. Endpoints that no rank has count as closed. Any thread of the rank may use
  // an endpoint. Once the world has failed, recv_any() throws CommError, and so does send() to an endpoint that has
  // closed. An endpoint that is destroyed by an exception aborts the world before it closes. Destroy the endpoints
  // before the world's communicator. Collective, blocks.
  virtual std::vector<std::unique_ptr<Channel>> make_channels(const std::vector<int>& numbers, int num_endpoints) = 0;

  // Aborts this group and all groups of the same world. Every wait on every rank, now or later, then throws CommError
  // with the first failure's world rank and reason. The first call wins.
  virtual void abort(const std::string& why) = 0;
};

}  // namespace braid
