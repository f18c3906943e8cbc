// The stages of one rank of a pipeline, kept in step with those of its data ranks. Turns the schedule's backwards into
// calls of a Replication. A parameter's .grad from before a step is set aside and added afterwards, so gradients
// accumulate over steps as with one rank.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "braid/module/frozen_values.h"
#include "braid/module/gathered_layers.h"
#include "braid/module/layer_stage.h"
#include "braid/module/ordered_gradients.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {

struct ReplicaStep {
  int64_t number = 0;  // steps done before
  int num_microbatches = 1;
  bool scaled = false;  // finish() may get a factor other than 1
};

class StageReplica {
 public:
  // Collective over `data`. If it is null, there are no data ranks, and gradients are only scaled. All arguments
  // outlive this. `layers` are those of all stages. Parameters and buffers of all data ranks become those of data rank
  // 0.
  StageReplica(const LayerList& layers, std::map<int, LayerStage>& stages, Communicator* data, const SyncSpec& sync,
               const ModelMemory& memory);

  // Begins a step. Follows changes that were made to the modules, or throws ConfigError. check() fails if an update()
  // is due.
  void begin_step(const ReplicaStep& step);
  void between_steps();                       // the same checks, before parameters() or layers() are read
  void begin_backward(int stage, int micro);  // before the backward of a microbatch
  void end_backward();
  void reduce(int stage);  // after a stage's last backward
  // Blocks until gradients are final, and multiplies those of this step by `factor`. REQUIRES: `factor` is 1 unless the
  // step is `scaled`.
  void finish(double factor);
  // Called instead of finish() if the step failed. Waits for no other rank. If there are data ranks or the step is
  // scaled, .grad is as it was before the step; otherwise it keeps what backwards have added. If all data ranks failed,
  // they may begin another step.
  void give_up();
  // Ends the training step `step`. If replicas are alike, data rank 0's buffers become those of all.
  void end_step(int64_t step);
  // Calls `write`, which updates parameters(), and gives the new parameters to all data ranks.
  void update(const std::function<void()>& write);
  // Called after values were written into the parameters.
  void note_written() const;
  // Returns the disk of parameters and gradients; null: they are in memory.
  param::DiskTensors* disk() const { return synced_ ? synced_->store().disk() : nullptr; }
  // Returns the factors by which the update must multiply the step's gradients, if they are on disk, one after another.
  const std::vector<double>& gradient_factors() const { return gradient_factors_; }

  // Collective over `data`. Runs `trace`, which runs the stages' forward `num_traces` times, or does nothing if that is
  // 0. Data ranks may have different numbers.
  void run_traces(int num_traces, const std::function<void()>& trace) const;

  // Returns true if the gradients of `step` are of this replica's rows only.
  bool apart(int64_t step) const;
  // Returns the tensors that an optimizer on this rank updates: the parameters of its stages, each once, or its shards.
  const Tensors& parameters() const;
  int64_t bytes_sent() const { return synced_ ? synced_->replication().bytes_sent() : 0; }
  // Collective over `data`. Calls `body` while the parameters and buffers of all data ranks are those of one model.
  void with_whole_parameters(const std::function<void()>& body);
  const LayerList& layers() const { return layers_; }  // layers of this rank's stages
  const SyncedModules* synced() const { return synced_ ? &*synced_ : nullptr; }
  // Starts to replicate parameters that were released after construction. Throws ConfigError if [sync] does not support
  // that.
  void follow();

 private:
  void replicate();
  void number_uses();
  void follow_changes();
  void set_aside(bool scaled);
  void finish_sums();
  void gather_layers();
  void arrived(const param::Parameter& param);
  bool averages() const {
    return sync_.replication == ReplicationKind::LocalSgd || sync_.replication == ReplicationKind::DiLoCo;
  }
  bool only_sums() const {
    return sync_.replication == ReplicationKind::AllReduce && sync_.zero == 0 && !memory_.has_disk();
  }
  bool has_sink() const { return synced_ && synced_->sink(); }
  const Tensors& updated() const { return synced_ ? synced_->modules().updated() : parameters_; }

  std::map<int, LayerStage>& stages_;
  Communicator* const data_;
  const SyncSpec& sync_;
  const ModelMemory& memory_;
  LayerList layers_;                          // layers of this rank's stages
  Tensors parameters_;                        // parameters of layers_, each once
  std::optional<SyncedModules> synced_;       // none: no data ranks, or no trained parameters
  std::shared_ptr<GatheredLayers> gathered_;  // null: parameters are whole
  std::optional<FrozenValues> frozen_;        // none: no data ranks
  std::map<int, int> first_gathered_;         // by stage: its first layer among those of this rank
  // By stage: the uses of parameters in it.
  std::map<int, OrderedGradients::Uses> uses_;
  std::vector<int> num_stages_of_;          // by parameter of the store: number of stages that use it
  std::map<int, int> left_;                 // by stage: backwards still to begin
  std::vector<int> open_;                   // by parameter: stages whose last backward has not begun
  std::vector<bool> ready_;                 // by parameter: its gradient was reported
  std::optional<OrderedGradients> moving_;  // with a sink, during a backward
  std::vector<double> gradient_factors_;
  Tensors set_aside_;
  bool unfinished_ = false;  // a step was given up; its sums may be in flight
  bool due_ = false;         // an update is due
};

}  // namespace braid::modules
