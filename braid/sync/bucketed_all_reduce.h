// Data parallelism by summing gradients, each over the ranks that hold copies of its parameter and see other samples.
// Source: Li et al., "PyTorch Distributed" (VLDB 2020), section 3.2.
//
// Neither the order in which buckets leave, nor the overlap, nor the size of buckets changes a bit of the result.
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

struct ReplicaGroups {
  Communicator& data;  // the replicas of this rank
  Communicator& tied;  // the ranks that share tied parameters (first and last stage of one replica); else size 1
};

// The group that all-reduces the gradients of parameters split along one of kSampleAxes.
struct SumGroup {
  mesh::AxisSet axes;                   // summed_axes() of these parameters
  std::unique_ptr<Communicator> ranks;  // of the replicas, those that hold copies of them
  int model_part = 0;                   // in names of state: tells ranks apart that hold other parts of a parameter
  std::unique_ptr<GradReducer> reducer = nullptr;  // over `ranks`; null: plain
};

struct AllReduceOptions {
  std::unique_ptr<GradReducer> reducer = nullptr;  // over ReplicaGroups::data; null: plain
  int model_part = 0;                              // as SumGroup's, of all other parameters
  std::vector<SumGroup> apart = {};                // in an order that all replicas share; none has the axes of another
};

// "reducer.residual/replica.1/wte", "reducer.directions/part.0/wte".
inline constexpr const char* kReducerState = "reducer.";

class BucketedAllReduce final : public Replication {
 public:
  // `store` and `groups` outlive this. Of `spec` it reads the sizes of buckets, `overlap` and `tune_buckets`. check()
  // fails where a parameter is split along one of kSampleAxes and there is no group for it.
  BucketedAllReduce(const SyncSpec& spec, param::ParamStore& store, ReplicaGroups groups,
                    AllReduceOptions options = {});

  void begin_step(int64_t step) override;
  void ready(const param::Parameter& param) override;
  void flush() override;
  void finish() override;
  int64_t bytes_sent() const override;
  int64_t bytes_across_nodes() const override;
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
  std::vector<std::unique_ptr<BucketSums>> sums_;  // over the replicas, then over each group apart
  std::vector<size_t> sum_of_param_;               // by parameter, an index of sums_
  SyncTuner tuner_;
  double last_finish_ = 0;  // seconds; 0: no step is over yet
  int64_t bytes_of_ties_ = 0;
};

}  // namespace braid::sync
