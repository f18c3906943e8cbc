// Finds changes that were made to modules after their replicas were created, and that replicas cannot follow.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_store.h"
#include "braid/spec/sync_spec.h"

namespace braid::modules {

// Returns a problem for each trained parameter of `layers` that is not in `known`, the parameters that replicas keep in
// step. Returns one more problem if `known` has parameters that no layer has.
std::vector<Problem> unknown_parameters(const LayerList& layers, const Tensors& known);

// Returns a problem for each parameter of the store that has changed in one of these ways:
// * its type, shape or device changed;
// * it was frozen, although `sync` would update it;
// * its values were replaced, although `sync` keeps values elsewhere.
// Compares no values.
std::vector<Problem> unfollowed_changes(const ModuleStore& modules, const SyncSpec& sync);

}  // namespace braid::modules
