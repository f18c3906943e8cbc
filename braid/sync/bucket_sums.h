// All-reduces gradients over one group of ranks, in buckets that are launched as backward completes them.
//
// The first step launches buckets in the order of the plan. Later steps use the order in which the buckets became
// complete on the group's rank 0. Groups that share ranks do not block one another. Each communicator has one order of
// buckets, and a rank launches the buckets of all its groups before it waits for any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/comm/op_name.h"
#include "braid/param/param_store.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

// A division of slices of the flat gradients into buckets that are all-reduced together. Buckets are in the order in
// which backward completes them, the reverse of the store's; extra slices of tied parameters come last. The first
// bucket is closed at `first_bucket_mb`, so that communication starts early. Only parameters for which `here` returns
// true (null: all) have buckets. The slices of a bucket are adjacent, so it ends where other parameters come between.
struct BucketPlan {
  std::vector<BucketShape> buckets;
  std::unordered_map<std::string, std::vector<int>> of_param;  // by parameter: the bucket of each of its slices
};
BucketPlan bucket_plan(const param::ParamStore& store, const SyncSpec& spec,
                       const std::function<bool(const param::Parameter& param)>& here = nullptr);

// The order in which buckets are launched. Replicas may complete their buckets in different orders (mirrored
// schedules), but collectives need one order. Every rank launches the buckets in the agreed order, each once it and all
// before it are complete.
class LaunchOrder {
 public:
  // Sets the order to the plan's, until follow(). Called between steps. `plan` lives until the next reset().
  void reset(const BucketPlan& plan);
  void begin_step();

  // Marks the gradients of a parameter as complete. check() fails at a second call in a step, or for an unknown
  // parameter.
  void ready(const std::string& param);
  bool all_ready() const;
  // Returns the next bucket to launch, each once per step; nothing if it is not complete yet.
  std::optional<int> take();

  const std::vector<int>& order() const { return order_; }
  bool was_taken(int bucket) const { return taken_[static_cast<size_t>(bucket)] == 1; }  // in this step
  // Returns the buckets of this step in the order in which they became complete on this rank.
  const std::vector<int>& seen() const { return seen_; }
  // Sets the order from the next step on. `order` is a permutation of the buckets, the same on all ranks.
  void follow(std::vector<int> order);

 private:
  const BucketPlan* plan_ = nullptr;
  std::vector<int> order_, seen_;
  std::vector<int> missing_;  // by bucket: number of slices that are not complete
  std::unordered_set<std::string> ready_;
  size_t next_ = 0;          // index into order_
  std::vector<char> taken_;  // by bucket: 1 if it was taken
};

class BucketSums {
 public:
  // `store` and `group` outlive this. `reducer` works over `group`; null: PlainReducer.
  BucketSums(param::ParamStore& store, Communicator& group, std::unique_ptr<GradReducer> reducer);
  BucketSums(const BucketSums&) = delete;

  // Sets the plan, and resets the launch order to the plan's. Called before the first step, and between steps.
  void follow(BucketPlan plan);
  void ready(const param::Parameter& param) { order_.ready(param.name); }
  void launch_complete();
  // Launches the remaining buckets. REQUIRES: ready() was called for all parameters of the plan.
  void launch_all();
  // Collective. Blocks until all buckets hold sums, and begins the next step. REQUIRES: launch_all() was called.
  void finish();
  // As GradientSync::final_from(), for the parameters of the plan.
  int64_t final_from() const;

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
  std::vector<comm::OpName> names_;  // by bucket
  LaunchOrder order_;
  bool order_is_learnt_ = false;
};

}  // namespace braid::sync
