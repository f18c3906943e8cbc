// A reducer that sums node by node: a reduce-scatter inside the node, any reducer across nodes on this rank's part, and
// an all-gather inside the node. With m replicas on a node, 1/m of the bytes leave it.
#pragma once

#include <memory>
#include <vector>

#include "braid/sync/grad_reducer.h"
#include "braid/sync/node_groups.h"

namespace braid::sync {

class NodeReducer final : public GradReducer {
 public:
  // `across` reduces over groups.across. Its buckets are parts of buckets and have no slices.
  NodeReducer(NodeGroups groups, std::unique_ptr<GradReducer> across)
      : groups_(std::move(groups)), across_(std::move(across)) {}

  void plan(const GradLayout& layout) override;
  void begin_step(int64_t step) override { across_->begin_step(step); }
  void start(int bucket, const at::Tensor& grads) override;
  void advance(int bucket) override;
  void finish(int bucket) override;
  int64_t bytes_sent() const override { return bytes_inside_ + across_->bytes_sent(); }
  int64_t bytes_across_nodes() const override { return across_->bytes_sent(); }

 private:
  struct Flight {
    at::Tensor part;    // this rank's part of the bucket
    at::Tensor padded;  // the bucket, padded to a divisible size; undefined if it is divisible
    at::Tensor grads;
    Work work;
  };
  const at::Tensor& whole(const Flight& flight) const { return flight.padded.defined() ? flight.padded : flight.grads; }

  NodeGroups groups_;
  const std::unique_ptr<GradReducer> across_;
  std::vector<Flight> flights_;  // by bucket
  int64_t bytes_inside_ = 0;
};

}  // namespace braid::sync
