// Finds changes to modules that were made after their replicas and that replicas cannot follow.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_store.h"
#include "braid/spec/sync_spec.h"

namespace braid::modules {

// One problem by name for each trained parameter of `layers` that is not among `known`, which are those that replicas
// keep in step, and one for all `known` parameters that no layer has.
std::vector<Problem> unknown_parameters(const LayerList& layers, const Tensors& known);

// Returns a problem for each parameter of the store whose type, shape or device has changed, that was frozen though
// `sync` would update it, or whose values were replaced though `sync` keeps values elsewhere. Compares no values.
std::vector<Problem> unfollowed_changes(const ModuleStore& modules, const SyncSpec& sync);

}  // namespace braid::modules
