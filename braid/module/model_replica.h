// The modules of one rank and what keeps them in step with those of the others: what autograd does on the way back
// becomes the calls of a Replication.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {

class ModelReplica {
 public:
  // Collective over `world`, which outlives this. The modules become those of rank 0. `first_step` steps have been
  // done.
  ModelReplica(LayerList layers, Communicator& world, const SyncedModules::Specs& specs, int64_t first_step);
  ModelReplica(const ModelReplica&) = delete;

  Tensors forward(Tensors tensors);
  // Runs the backward of `loss`, whose gradient begins with `seed`. A step's last backward sends complete gradients.
  // Throws ConfigError with the changes to the modules that replicas cannot follow.
  enum class Backward { OfMany, Last };
  void backward(const at::Tensor& loss, double seed, Backward kind);
  // After the last backward: waits until the gradients that this rank updates with are final, and takes over values
  // that were loaded into the modules. May be called again.
  void finish();
  // After the update: all ranks get the new parameters, and rank 0's buffers where replicas are alike after this step;
  // gradients are cleared.
  void updated();
  // Calls `body` while all ranks have the whole parameters and buffers of one model, the newest; where they train
  // apart, the mean of all. Collective.
  void with_whole_parameters(const std::function<void()>& body);

  // Between steps: takes over values that were loaded into the modules. Throws ConfigError as backward().
  void follow();
  // Between steps, after values were written into the parameters: `steps` have been done.
  void go_on_after(int64_t steps);
  int64_t num_steps() const { return num_steps_; }
  const LayerList& layers() const { return layers_; }
  bool sends() const { return kind_ == Backward::Last; }  // the last backward of this step has run
  const SyncedModules& synced() const { return *synced_; }
  sync::Replication& replication() const { return synced_->replication(); }

 private:
  void begin_step();
  void begin_microbatch();
  void bind_accumulators();
  void arrived(const param::Parameter& param);
  void write(const param::Parameter& param, const at::Tensor& gradient);
  void add_what_is_missing();
  void acquire_backward(int layer);
  void release_backward(int layer);
  Tensors run(int layer, Tensors tensors);

  LayerList layers_;
  Communicator& world_;
  const std::unique_ptr<Communicator> alone_;  // this rank
  ListenerList listeners_;
  std::unique_ptr<SyncedModules> synced_;
  Backward kind_ = Backward::OfMany;
  bool finished_ = false;
  std::vector<bool> seen_;  // by parameter, in the last backward
  std::vector<int> held_;   // by layer, acquired for backward
  int64_t num_steps_;
  int64_t num_backwards_ = 0;  // of this step
};

}  // namespace braid::modules
