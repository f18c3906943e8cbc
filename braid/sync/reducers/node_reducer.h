// Sums node by node: inside a node a reduce-scatter, across nodes any reducer on this rank's part, inside again an
// all-gather. So 1/m of the bytes leave a node with m replicas.
#pragma once

#include <memory>
#include <vector>

#include "braid/sync/grad_reducer.h"
#include "braid/sync/node_groups.h"

namespace braid::sync {

class NodeReducer final : public GradReducer {
 public:
  // `across` reduces over groups.across, and sees parts of buckets, without slices.
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
    at::Tensor part;    // this rank's
    at::Tensor padded;  // the bucket, made divisible; undefined where it is
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
