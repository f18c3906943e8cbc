// Sums gradients over one group of ranks, in buckets that are launched as backward completes them.
//
// The first step launches in the order of the plan. After it the group follows the order in which the buckets became
// complete on its rank 0. Groups that share ranks do not wait for one another: a communicator carries buckets of one
// order, and a rank launches those of all its groups before it waits for any.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/grad_reducer.h"

namespace braid::sync {

// Groups slices of the flat gradients into buckets that are reduced together: pure arithmetic on a ParamStore's layout.

// Buckets in the order backward completes them, which is the reverse of the store's; extra slices of tied parameters
// come last. The first bucket is closed at `first_bucket_mb`, so that communication starts early. Only parameters that
// are `here` (null: all) have buckets: the slices of one touch, so it ends where other parameters come between.
struct BucketPlan {
  std::vector<BucketShape> buckets;
  std::unordered_map<std::string, std::vector<int>> of_param;  // the bucket of each of a parameter's slices
};
BucketPlan bucket_plan(const param::ParamStore& store, const SyncSpec& spec,
                       const std::function<bool(const param::Parameter& param)>& here = nullptr);

// The local elements that a placement's pieces cover, merged, ascending.
std::vector<ElementRun> covered_runs(const mesh::Placement& placement);

// The order in which buckets are launched. Replicas complete their buckets in different orders (a mirrored schedule),
// but collectives need one order. Every rank launches in the agreed order, each bucket once it and all before it are
// complete.
class LaunchOrder {
 public:
  // The order is the plan's until follow(). Between steps. `plan` outlives this or the next reset().
  void reset(const BucketPlan& plan);
  void begin_step();

  // The gradients of a parameter are complete. check() fails the second time in a step, or for a stranger.
  void ready(const std::string& param);
  bool all_ready() const;
  // The next bucket to launch, once.
  std::optional<int> take();

  const std::vector<int>& order() const { return order_; }
  // The buckets of this step in the order in which they became complete on this rank.
  const std::vector<int>& seen() const { return seen_; }
  // From the next step on. A permutation of the buckets, the same on all ranks.
  void follow(std::vector<int> order);

 private:
  const BucketPlan* plan_ = nullptr;
  std::vector<int> order_, seen_;
  std::vector<int> missing_;  // slices of a bucket that are not complete
  std::unordered_set<std::string> ready_;
  size_t next_ = 0;  // in order_
};

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
