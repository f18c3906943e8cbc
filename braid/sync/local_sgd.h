// Local SGD: replicas train independently, each on its own gradients, and average their weights every `period` steps.
// This needs a fraction of the traffic of all-reducing gradients at every step, but gives a different training.
//
//   step        0   1   2   3   4   5   6   7   8        warmup 2, period 3
//   gradients  sum sum own own own own own own own
//   weights     =   =           avg         avg          equal after each of these
//
// Sources: Stich, "Local SGD Converges Fast and Communicates Little" (ICLR 2019), algorithm 1, and McMahan et al.,
// "Communication-Efficient Learning of Deep Networks from Decentralized Data" (2017): averaging; Lin et al., "Don't Use
// Large Mini-Batches, Use Local SGD" (ICLR 2020), section 3: the first steps synchronous (post-local SGD); Douillard et
// al., "DiLoCo" (2023), algorithm 1: an outer optimizer in place of the average. As there, each replica keeps its own
// optimizer moments.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/param_store.h"
#include "braid/sync/bucketed_all_reduce.h"
#include "braid/sync/replication.h"

namespace braid::sync {

// A scope in which the parameters in `store` are their mean over `replicas`, the same bits on all of them. This mean is
// the one model that independently trained replicas represent. The destructor restores this rank's own parameters, bit
// for bit. REQUIRES: the parameters are only read meanwhile.
class MeanOfReplicas {
 public:
  // Collective over `replicas`. Both arguments outlive this. REQUIRES: parameters are not sharded.
  MeanOfReplicas(param::ParamStore& store, Communicator& replicas);
  ~MeanOfReplicas();
  MeanOfReplicas(const MeanOfReplicas&) = delete;

 private:
  param::ParamStore& store_;
  at::Tensor own_;
};

// The outer optimizer of DiLoCo: torch.optim.SGD with nesterov=True. Its gradient is g = anchor - average, the opposite
// of the replicas' common movement since they were last equal. The update is m = momentum m + g, then weights = anchor
// - lr (g + momentum m).
struct OuterOptimizer {
  double lr = 1, momentum = 0;
};

struct LocalSgdPlan {
  int64_t warmup = 0;                   // first steps, whose gradients are all-reduced
  int64_t period = 1;                   // local steps between two synchronisations
  int64_t num_steps = 0;                // steps of the run; the last one always ends with a synchronisation
  std::optional<OuterOptimizer> outer;  // none: weights become the average

  bool is_local(int64_t step) const { return step >= warmup; }
  // Returns true if local step `step` ends with a synchronization of all replicas.
  bool synchronises(int64_t step) const { return (step + 1 - warmup) % period == 0 || step + 1 == num_steps; }
};

class LocalSgd final : public Replication {
 public:
  // Creates the all-reduce of gradients over `groups`, which outlive it.
  using MakeAllReduce = std::function<std::unique_ptr<GradientSync>(const ReplicaGroups& groups)>;

  // `store` and the members of `groups` outlive this. Collective over groups.replicas.
  LocalSgd(const LocalSgdPlan& plan, param::ParamStore& store, const ReplicaGroups& groups, const MakeAllReduce& make);

  void begin_step(int64_t step) override;
  void ready(const param::Parameter& param) override { gradients_->ready(param); }
  void flush() override { gradients_->flush(); }
  void finish() override { gradients_->finish(); }
  void updated() override;
  GradientsOf gradients() const override;
  Replicas replicas() const override { return replicas_; }
  void resume(Replicas replicas, const std::vector<std::string>& released) override;
  std::string own_prefix() const override;
  int64_t bytes_sent() const override;
  // Returns "outer.anchor/NAME" and "outer.momentum/NAME", the same on all replicas; nothing without an outer
  // optimizer.
  std::vector<ReplicationState> state() override;

 private:
  void average();
  void outer_step();

  const LocalSgdPlan plan_;
  param::ParamStore& store_;
  ReplicaGroups groups_;
  std::unique_ptr<Communicator> alone_;  // group of this rank alone
  std::unique_ptr<GradientSync> together_, apart_;
  GradientSync* gradients_;      // together_ or apart_, for the current step
  std::optional<int64_t> step_;  // the current step, until its update is made
  Replicas replicas_ = Replicas::Alike;
  // Flat, with an outer optimizer only. anchor_ has the weights when all replicas were last equal.
  at::Tensor anchor_, momentum_;
  int64_t bytes_averaging_ = 0;
};

}  // namespace braid::sync
