// Data parallelism by summing gradients over the replicas, in buckets that are launched as backward completes them. It
// knows neither the model nor the optimizer, nor what a bucket becomes on its way (grad_reducer.h). Source: Li et al.,
// "PyTorch Distributed" (VLDB 2020), section 3.2.
//
// The first step launches in the order of the plan. After it the group follows the order in which the buckets became
// complete on its rank 0. Neither this order, nor the overlap, nor the size of buckets changes a bit of the result.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/bucket_plan.h"
#include "braid/sync/grad_reducer.h"
#include "braid/sync/launch_order.h"
#include "braid/sync/replication.h"
#include "braid/sync/sync_tuner.h"

namespace braid {

struct ReplicaGroups {
  Communicator& data;  // the replicas of this rank
  Communicator& tied;  // the ranks that share tied parameters (first and last stage of one replica); else size 1
};

struct AllReduceOptions {
  std::unique_ptr<GradReducer> reducer = nullptr;  // over ReplicaGroups::data; null: plain
  int model_part = 0;  // in names of state: tells ranks apart that hold other parts of the same parameters
};

// "reducer.residual/replica.1/wte", "reducer.directions/part.0/wte".
inline constexpr const char* kReducerState = "reducer.";

class BucketedAllReduce final : public Replication {
 public:
  // `store` and `groups` outlive this. Of `spec` it reads the sizes of buckets, `overlap` and `tune_buckets`.
  BucketedAllReduce(const SyncSpec& spec, ParamStore& store, ReplicaGroups groups, AllReduceOptions options = {});

  void begin_step(int64_t step) override { reducer_->begin_step(step); }
  void ready(const Parameter& param) override;
  void flush() override;
  void finish() override;
  int64_t bytes_sent() const override { return bytes_of_ties_ + reducer_->bytes_sent(); }
  int64_t bytes_across_nodes() const override { return reducer_->bytes_across_nodes(); }
  // What the reducer carries from step to step; kReducerState begins its names.
  std::vector<ReplicationState> state() override;

  const std::vector<int>& launch_order() const { return order_.order(); }

 private:
  void make_plan();
  void launch_complete();
  at::Tensor slice(int bucket) const;
  ReplicationState saved(const ReducerState& state) const;
  void learn_order();
  void choose_ways();

  SyncSpec spec_;
  ParamStore& store_;
  ReplicaGroups groups_;
  std::unique_ptr<GradReducer> reducer_;
  const int model_part_;
  SyncTuner tuner_;
  BucketPlan plan_;
  LaunchOrder order_;
  bool order_is_learnt_ = false;
  double last_finish_ = 0;  // seconds; 0: no step is over yet
  int64_t bytes_of_ties_ = 0;
};

}  // namespace braid
