// The parameters of a rank's modules with their replication over other ranks: the store, the groups, the Replication.
// It reports every gradient that autograd computes; the caller says when a step's gradients are complete.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "braid/comm/communicator.h"
#include "braid/module/layer_call.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_store.h"
#include "braid/param/unit_sink.h"
#include "braid/spec/optimizer_spec.h"
#include "braid/spec/sync_spec.h"
#include "braid/sync/replication.h"

namespace braid::modules {

// Points in an autograd graph at which something is called: on the way back, before a layer's backward begins and after
// it has given its input's gradient. Values and gradients pass unchanged.

// The tensors again; when the gradients of all that need one have come, `call` runs, before they go on. Where none
// needs a gradient it never runs.
Tensors with_call_in_backward(const Tensors& tensors, std::shared_ptr<const std::function<void()>> call);

// Makes the modules of all ranks those of rank 0: parameters and buffers. Collective.
void broadcast_values(const LayerList& layers, Communicator& world);
// Makes the buffers of all ranks' modules those of rank 0. Running statistics of a batch norm, for instance, are of
// each rank's own rows; rank 0's are taken for the model's. Collective.
void broadcast_buffers(const LayerList& layers, Communicator& world);

class SyncedModules {
 public:
  struct Specs {
    const SyncSpec& sync;
    const OptimizerSpec& optimizer;  // of parameter servers
  };
  // Collective over `world`, which outlives this. Parameters are alike on all ranks.
  SyncedModules(const LayerList& layers, Communicator& world, const Specs& specs);
  ~SyncedModules();
  SyncedModules(const SyncedModules&) = delete;

  // Called in every backward that has added to a parameter's .grad, after all uses there. May be empty.
  std::function<void(const param::Parameter& param)> on_gradient;

  const ModuleStore& modules() const { return *modules_; }
  param::ParamStore& store() const { return modules_->store(); }
  param::UnitSink* sink() const { return sink_.get(); }  // where gradients are sharded; else null
  Communicator& shards() const { return *shards_; }      // the ranks over which one copy is sharded
  sync::Replication& replication() const { return *replication_; }

  // Throws ConfigError naming what was done to the modules, those of `layers`, that replicas cannot follow
  // (module_changes.h).
  void require_followed(const LayerList& layers) const;
  // The same; and where values of parameters were replaced since, by torch::load or set_data(), on all ranks alike,
  // takes over those of rank 0, collectively. Not while a layer runs.
  void follow();

  // Makes every parameter's .grad its whole gradient in the store, so that backward adds to that.
  void accumulate_in_store() const;

 private:
  void agree_on(const std::vector<int64_t>& changes);

  const SyncSpec sync_;
  std::unique_ptr<Communicator> shards_, copies_, alone_;
  std::unique_ptr<ModuleStore> modules_;
  std::unique_ptr<param::UnitSink> sink_;
  std::unique_ptr<sync::Replication> replication_;
  std::vector<int64_t> frozen_;  // by parameter, 1: it is, as far as all ranks know
};

}  // namespace braid::modules
