// The order in which buckets are launched. Replicas complete their buckets in different orders (a mirrored schedule),
// but collectives need one order. Every rank launches in the agreed order, each bucket once it and all before it are
// complete.
#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "braid/sync/bucket_plan.h"

namespace braid::sync {

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

}  // namespace braid::sync
