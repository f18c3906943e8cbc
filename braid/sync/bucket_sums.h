// Sums gradients over one group of ranks, in buckets that are launched as backward completes them.
//
// The first step launches in the order of the plan. After it the group follows the order in which the buckets became
// complete on its rank 0. Groups that share ranks do not wait for one another: a communicator carries buckets of one
// order, and a rank launches those of all its groups before it waits for any.
#pragma once

#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/sync/bucket_plan.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/launch_order.h"

namespace braid::sync {

class BucketSums {
 public:
  // Both outlive this. `reducer` is over `group`; null: plain.
  BucketSums(param::ParamStore& store, Communicator& group, std::unique_ptr<GradReducer> reducer);
  BucketSums(const BucketSums&) = delete;

  // Before the first step and between steps. The order is the plan's again.
  void follow(BucketPlan plan);
  void ready(const param::Parameter& param) { order_.ready(param.name); }
  void launch_complete();
  // All parameters of the plan have been ready.
  void launch_all();
  // After launch_all(). Blocks until all buckets are sums; the next step begins. Collective.
  void finish();

  Communicator& group() const { return group_; }
  GradReducer& reducer() const { return *reducer_; }
  const std::vector<int>& launch_order() const { return order_.order(); }

 private:
  at::Tensor slice(int bucket) const;
  void learn_order();

  param::ParamStore& store_;
  Communicator& group_;
  std::unique_ptr<GradReducer> reducer_;
  BucketPlan plan_;
  LaunchOrder order_;
  bool order_is_learnt_ = false;
};

}  // namespace braid::sync
