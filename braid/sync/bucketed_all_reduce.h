// Data parallelism by all-reducing gradients. Each is summed over the ranks that hold copies of its parameter and
// process different samples. Source: Li et al., "PyTorch Distributed" (VLDB 2020), section 3.2.
//
// The launch order, the overlap and the size of buckets do not change a bit of the result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/mesh/placement.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/bucket_sums.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/replication.h"
#include "braid/sync/sync_tuner.h"

namespace braid::sync {

// The group that all-reduces the gradients of parameters split along one of kSampleAxes.
struct SumGroup {
  mesh::AxisSet axes;                   // summed_axes() of these parameters
  std::unique_ptr<Communicator> ranks;  // the replicas that hold copies of these parameters
  // In names of state: distinguishes ranks that hold different parts of a parameter.
  int model_part = 0;
  std::unique_ptr<GradReducer> reducer = nullptr;  // works over `ranks`; null: PlainReducer
};

struct AllReduceOptions {
  std::unique_ptr<GradReducer> reducer = nullptr;  // works over ReplicaGroups::replicas; null: PlainReducer
  int model_part = 0;                              // as SumGroup::model_part, for all other parameters
  std::vector<SumGroup> apart = {};                // in the same order on all replicas; no two have equal axes
};

// The prefix of names of reducer state: "reducer.residual/replica.1/wte", "reducer.directions/part.0/wte".
inline constexpr const char* kReducerState = "reducer.";

class BucketedAllReduce final : public Replication {
 public:
  // `store` and the members of `groups` outlive this. Uses only the bucket sizes, `overlap` and `tune_buckets` of
  // `spec`. check() fails if a parameter is split along one of kSampleAxes and has no SumGroup.
  BucketedAllReduce(const SyncSpec& spec, param::ParamStore& store, ReplicaGroups groups,
                    AllReduceOptions options = {});

  void begin_step(int64_t step) override;
  void ready(const param::Parameter& param) override;
  void flush() override;
  void finish() override;
  int64_t final_from() const override;
  int64_t bytes_sent() const override;
  bool measures_steps() const override { return !tuner_.done(); }
  // Returns the reducers' state; its names begin with kReducerState.
  std::vector<ReplicationState> state() override;

  // Returns the launch order of the parameters that are not split along kSampleAxes.
  const std::vector<int>& launch_order() const { return sums_.front()->launch_order(); }

 private:
  void make_plans();
  ReplicationState saved(const ReducerState& state) const;
  void choose_ways();

  SyncSpec spec_;
  param::ParamStore& store_;
  ReplicaGroups groups_;
  std::vector<SumGroup> apart_;
  const int model_part_;
  std::vector<std::unique_ptr<BucketSums>> sums_;  // over the replicas, then over each of apart_
  std::vector<size_t> sum_of_param_;               // by parameter: index into sums_
  SyncTuner tuner_;
  double last_finish_ = 0;  // time of the last finish() in seconds; 0: none yet
  int64_t bytes_of_ties_ = 0;
};

}  // namespace braid::sync
