// The parameters of a rank's modules with their replication over other ranks: the store, the groups, the Replication.
// Reports every gradient that autograd computes. The caller decides when a step's gradients are complete.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_call.h"
#include "braid/module/layer_list.h"
#include "braid/module/model_memory.h"
#include "braid/module/module_store.h"
#include "braid/param/unit_sink.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"

namespace braid::modules {

// Collective. Copies rank 0's parameters and buffers to all ranks. Throws ConfigError if ranks that are threads have
// the same parameters.
void broadcast_values(const LayerList& layers, Communicator& world);
// Collective. Copies rank 0's buffers to all ranks. Running statistics of a batch norm, for instance, come from each
// rank's own rows; those of rank 0 become the model's.
void broadcast_buffers(const LayerList& layers, Communicator& world);

class SyncedModules {
 public:
  struct Specs {
    const SyncSpec& sync;
    const OptimizerSpec& optimizer;  // optimizer of parameter servers
    ModelMemory memory = {};
    std::vector<int> stage_of_layer = {};  // stages whose layers run in sequence; empty: one
  };
  // Collective over `world`, which outlives this. REQUIRES: parameters are equal on all ranks.
  SyncedModules(const LayerList& layers, Communicator& world, const Specs& specs);
  ~SyncedModules();
  SyncedModules(const SyncedModules&) = delete;

  // Called in every backward that adds to a parameter's .grad, after all its uses were added. May be empty.
  std::function<void(const param::Parameter& param)> on_gradient;

  const ModuleStore& modules() const { return *modules_; }
  param::ParamStore& store() const { return modules_->store(); }
  param::UnitSink* sink() const { return sink_.get(); }  // null unless gradients are sharded
  Communicator& shards() const { return *shards_; }      // the ranks over which one copy is sharded
  sync::Replication& replication() const { return *replication_; }

  // Throws ConfigError naming changes to the modules of `layers` that replicas cannot follow (module_changes.h).
  void require_followed(const LayerList& layers) const;
  // Throws ConfigError for changes that replicas cannot follow. If values of parameters were replaced on all ranks, by
  // torch::load or set_data(), takes over those of rank 0; this is collective. Not called while a layer runs.
  void follow();

  // Sets every parameter's .grad to its whole gradient in the store, so that backward adds to it.
  void accumulate_in_store() const;
  // Moves a parameter's .grad, the sum over some of its local uses in one microbatch, to the sink; undefined: zeros.
  // REQUIRES: sink().
  void move_to_sink(const param::Parameter& param, const std::vector<int>& uses, int micro) const;
  // Resets every parameter's .grad, before a backward whose gradients move to the sink.
  void reset_gradients() const;

 private:
  void agree_on(const std::vector<int64_t>& changes);

  const SyncSpec sync_;
  std::unique_ptr<Communicator> shards_, copies_, alone_;
  std::unique_ptr<ModuleStore> modules_;
  std::unique_ptr<param::UnitSink> sink_;
  std::unique_ptr<sync::Replication> replication_;
  std::vector<int64_t> frozen_;  // by parameter: 1 if all ranks have agreed that it is frozen
};

}  // namespace braid::modules
