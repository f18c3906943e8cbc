// The stages of one rank of a pipeline, kept in step with those of its data ranks: what the schedule's backwards do
// becomes the calls of a Replication. What a parameter's .grad held before a step is set aside and added afterwards:
// gradients accumulate over steps as with one rank.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "braid/module/layer_stage.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {

struct ReplicaStep {
  int64_t number = 0;  // steps have been done
  int num_microbatches = 1;
  bool scaled = false;  // finish() may be given a factor other than 1
};

class StageReplica {
 public:
  // Collective over `data`; without it there is nobody to be in step with, and gradients are only scaled. All arguments
  // outlive this. `layers` are those of all stages. The modules become those of data rank 0.
  StageReplica(const LayerList& layers, const std::map<int, LayerStage>& stages, Communicator* data,
               const SyncSpec& sync);

  // Fails where update() was due. Follows what was done to the modules since, or throws ConfigError.
  void begin_step(const ReplicaStep& step);
  void between_steps();            // the same, for whoever looks at parameters() and layers()
  void begin_backward(int stage);  // of a microbatch
  void reduce(int stage);          // after the last
  // Blocks until gradients are final; those of this step are multiplied by `factor`, which is 1 where it was not
  // `scaled`.
  void finish(double factor);
  // Instead of finish(), where the step failed. Where there are data ranks or the step is scaled, .grad is as it was
  // before the step; else it keeps what backwards have added. Waits for nobody. Data ranks that all failed may go on
  // with another step.
  void give_up();
  // The training step `step` has been made. Where replicas are alike, data rank 0's buffers become those of all.
  void end_step(int64_t step);
  // Calls `write`, which updates parameters(); afterwards those of all data ranks are the new ones.
  void update(const std::function<void()>& write);

  // Returns true if the gradients of `step` are of this replica's rows only.
  bool apart(int64_t step) const;
  // Returns the tensors that an optimizer on this rank updates: the parameters of its stages, each once, or its shards.
  const Tensors& parameters() const;
  int64_t bytes_sent() const { return synced_ ? synced_->replication().bytes_sent() : 0; }
  // Calls `body` while the parameters and buffers of all data ranks are those of one model. Collective over `data`.
  void with_whole_parameters(const std::function<void()>& body);
  const LayerList& layers() const { return layers_; }  // of this rank's stages
  const SyncedModules* synced() const { return synced_ ? &*synced_ : nullptr; }
  // Takes in parameters that were released since. Throws ConfigError where [sync] cannot.
  void follow();

 private:
  void replicate();
  void number_places();
  void follow_changes();
  void set_aside(bool scaled);
  void land_sums();
  void arrived(const param::Parameter& param);
  bool averages() const {
    return sync_.replication == ReplicationKind::LocalSgd || sync_.replication == ReplicationKind::DiLoCo;
  }
  bool only_sums() const { return sync_.replication == ReplicationKind::AllReduce && sync_.zero == 0; }
  const Tensors& updated() const { return synced_ ? synced_->modules().updated() : parameters_; }

  const std::map<int, LayerStage>& stages_;
  Communicator* const data_;
  const SyncSpec& sync_;
  LayerList layers_;                        // of this rank's stages
  Tensors parameters_;                      // theirs, each once
  std::optional<SyncedModules> synced_;     // none: no data ranks, or nothing that is trained
  std::map<int, std::vector<int>> places_;  // of a stage's parameters in the store
  std::vector<int> num_stages_of_;          // of the store's parameters: how many stages use it
  std::map<int, int> left_;                 // of a stage, backwards still to begin
  std::vector<int> open_;                   // of a parameter, stages whose last backward has not begun
  std::vector<bool> ready_;                 // by parameter
  Tensors set_aside_;
  bool unfinished_ = false;  // a step was given up, of which sums may be on their way
  bool due_ = false;         // an update
};

}  // namespace braid::modules
