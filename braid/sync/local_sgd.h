// Replicas that train apart, each on its own gradients, and average their weights every so many steps: a fraction of
// the traffic of summing gradients at every step, for another training.
//
//   step        0   1   2   3   4   5   6   7   8        warmup 2, period 3
//   gradients  sum sum own own own own own own own
//   weights     =   =           avg         avg          alike after each of these
//
// Sources: Stich, "Local SGD Converges Fast and Communicates Little" (ICLR 2019), algorithm 1, and McMahan et al.,
// "Communication-Efficient Learning of Deep Networks from Decentralized Data" (2017): averaging; Lin et al., "Don't Use
// Large Mini-Batches, Use Local SGD" (ICLR 2020), section 3: the first steps synchronous (post-local SGD); Douillard et
// al., "DiLoCo" (2023), algorithm 1: an outer optimizer in place of the average. The moments of each replica stay its
// own, as there.
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

// The one model that replicas which train apart stand for between two averages: the mean of their parameters. Only to
// look at; what each trains on stays its own.

// While alive, the parameters in `store` are the mean over `replicas`, the same bits on all of them. Afterwards they
// are this rank's own again, bit for bit: nobody writes them meanwhile. The first is collective.
class MeanOfReplicas {
 public:
  // Both outlive this. Parameters are not sharded.
  MeanOfReplicas(param::ParamStore& store, Communicator& replicas);
  ~MeanOfReplicas();
  MeanOfReplicas(const MeanOfReplicas&) = delete;

 private:
  param::ParamStore& store_;
  at::Tensor own_;
};

// SGD on anchor - average, the way all replicas together went since they were last alike, as torch.optim.SGD with
// nesterov=True makes it: m = momentum m + g, then weights = anchor - lr (g + momentum m).
struct OuterOptimizer {
  double lr = 1, momentum = 0;
};

struct LocalSgdPlan {
  int64_t warmup = 0;                   // steps whose gradients are summed
  int64_t period = 1;                   // local steps between two synchronisations
  int64_t num_steps = 0;                // of the run; its last one ends with a synchronisation whatever the period
  std::optional<OuterOptimizer> outer;  // none: the average itself

  bool is_local(int64_t step) const { return step >= warmup; }
  // Returns true if local step `step` ends with a synchronization of all replicas.
  bool synchronises(int64_t step) const { return (step + 1 - warmup) % period == 0 || step + 1 == num_steps; }
};

class LocalSgd final : public Replication {
 public:
  // Makes what sums gradients over `groups`, which outlive it.
  using MakeAllReduce = std::function<std::unique_ptr<GradientSync>(const ReplicaGroups& groups)>;

  // `store` and the members of `groups` outlive this. Collective over groups.data.
  LocalSgd(const LocalSgdPlan& plan, param::ParamStore& store, const ReplicaGroups& groups, const MakeAllReduce& make);

  void begin_step(int64_t step) override;
  void ready(const param::Parameter& param) override { gradients_->ready(param); }
  void flush() override { gradients_->flush(); }
  void finish() override { gradients_->finish(); }
  void updated() override;
  GradientsOf gradients() const override;
  Replicas replicas() const override { return replicas_; }
  void resume(Replicas replicas) override;
  std::string own_prefix() const override;
  int64_t bytes_sent() const override;
  // With an outer optimizer: "outer.anchor/NAME" and "outer.momentum/NAME", the same on all replicas.
  std::vector<ReplicationState> state() override;

 private:
  void average();
  void outer_step();

  const LocalSgdPlan plan_;
  param::ParamStore& store_;
  ReplicaGroups groups_;
  std::unique_ptr<Communicator> alone_;  // this rank
  std::unique_ptr<GradientSync> together_, apart_;
  GradientSync* gradients_;      // of the two, the one of the step under way
  std::optional<int64_t> step_;  // until its update is made
  Replicas replicas_ = Replicas::Alike;
  at::Tensor anchor_, momentum_;  // flat; the weights when all were last alike. With an outer optimizer only.
  int64_t bytes_averaging_ = 0;
};

}  // namespace braid::sync
