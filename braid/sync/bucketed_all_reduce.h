// Plain data parallelism: gradients are summed over the replicas in buckets that are launched as backward completes
// them, always in the order of the plan: replicas may complete them in different orders (a mirrored schedule). It knows
// neither the model nor the optimizer. Source: Li et al., "PyTorch Distributed" (VLDB 2020), section 3.2.
#pragma once

#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"

namespace braid {

// A run of whole gradient slices in the flat buffer, reduced by one collective.
struct GradBucket {
  int64_t begin = 0, end = 0;  // elements of ParamStore::flat_grads()
  int num_params = 0;          // parameters with a slice in it
};

// Buckets in the order backward completes them, which is the reverse of the store's; extra slices of tied parameters
// come last. The first bucket is closed at `first_bucket_mb`, so that communication starts early.
struct BucketPlan {
  std::vector<GradBucket> buckets;
  std::unordered_map<std::string, std::vector<int>> of_param;  // the buckets that hold a parameter's slices
};
BucketPlan bucket_plan(const ParamStore& store, const SyncSpec& spec);

struct ReplicaGroups {
  Communicator& data;  // the replicas of this rank
  Communicator& tied;  // the ranks that share tied parameters (first and last stage of one replica); else size 1
};

class BucketedAllReduce final : public Replication {
 public:
  // All arguments outlive this.
  BucketedAllReduce(const SyncSpec& spec, ParamStore& store, ReplicaGroups groups);

  void ready(const Parameter& param) override;
  void flush() override;
  void finish() override;
  int64_t bytes_sent() const override { return bytes_sent_; }

 private:
  void launch(size_t bucket);
  void add_tied_uses();

  ParamStore& store_;
  ReplicaGroups groups_;
  BucketPlan plan_;
  std::unordered_set<std::string> ready_;  // parameters that said so in this step
  std::vector<int> missing_;               // parameters of a bucket that are not ready yet
  size_t next_ = 0;                        // the bucket to launch next
  std::vector<Work> works_;                // per bucket, of this step
  int64_t bytes_sent_ = 0;
};

}  // namespace braid
