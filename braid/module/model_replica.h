// The modules of one rank, kept in step with those of other ranks. Turns events of autograd's backward into calls of a
// Replication.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/frozen_values.h"
#include "braid/module/gathered_layers.h"
#include "braid/module/layer_list.h"
#include "braid/module/microbatch_listener.h"
#include "braid/module/ordered_gradients.h"
#include "braid/module/synced_modules.h"

namespace braid::modules {

class ModelReplica {
 public:
  // Collective over `world`, which outlives this. Parameters and buffers of all ranks become those of rank 0.
  // `first_step` is the number of steps done before.
  ModelReplica(LayerList layers, Communicator& world, const SyncedModules::Specs& specs, int64_t first_step);
  ModelReplica(const ModelReplica&) = delete;

  Tensors forward(Tensors tensors);
  // Runs the backward of `loss`, starting with the gradient `seed`. The last backward of a step sends gradients as they
  // become complete. Throws ConfigError with the changes to the modules that replicas cannot follow. REQUIRES:
  // require_complete() does not throw.
  enum class Backward { OfMany, Last };
  void backward(const at::Tensor& loss, double seed, Backward kind);
  // Throws RunError if a backward has failed: some gradients of the step are added and sent, and others are not.
  void require_complete() const;
  // Called after the last backward, once or more. Waits until the gradients that this rank updates with are final, and
  // takes over values that were loaded into the modules.
  void finish();
  // Called after the update. All ranks get the new parameters and, if replicas are alike after this step, rank 0's
  // buffers. Clears the gradients.
  void updated();
  // Collective. Calls `body` while all ranks have the whole, newest parameters and buffers of one model (WholeModel).
  // If ranks train independently, the parameters are the mean over all ranks.
  void with_whole_parameters(const std::function<void()>& body);

  // Called between steps. Takes over values that were loaded into the modules. Throws ConfigError as backward() does.
  void follow();
  // Called between steps, after values were written into the parameters. Sets the number of steps done to `steps`.
  void resume_after(int64_t steps);
  int64_t num_steps() const { return num_steps_; }
  const LayerList& layers() const { return layers_; }
  bool is_in_step() const { return complete_ && num_backwards_ > 0; }  // has gradients for the next update
  bool sends() const { return kind_ == Backward::Last; }               // the last backward of this step has run
  const SyncedModules& synced() const { return *synced_; }
  sync::Replication& replication() const { return synced_->replication(); }

 private:
  void begin_step();
  void begin_microbatch();
  void bind_accumulators();
  void arrived(const param::Parameter& param);
  void end_backward();
  void add_what_is_missing();
  Tensors run(int layer, Tensors tensors);

  LayerList layers_;
  Communicator& world_;
  const std::unique_ptr<Communicator> alone_;  // group of this rank alone
  ListenerList listeners_;
  FrozenValues frozen_;
  std::unique_ptr<SyncedModules> synced_;
  std::shared_ptr<GatheredLayers> gathered_;  // null: parameters are whole
  OrderedGradients::Uses uses_;               // all, for the sink
  std::optional<OrderedGradients> moving_;    // with a sink, during a backward
  Backward kind_ = Backward::OfMany;
  bool finished_ = false;
  bool complete_ = true;    // no backward of this step has failed
  std::vector<bool> seen_;  // by parameter, during a backward: it got a gradient
  int64_t num_steps_;
  int64_t num_backwards_ = 0;  // backwards done in this step
};

}  // namespace braid::modules
