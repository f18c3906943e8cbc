// What was done to modules after replicas of them were made, and what of it replicas cannot follow. It changes nothing.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/module/layer_list.h"
#include "braid/module/module_store.h"
#include "braid/spec/sync_spec.h"

namespace braid {

// One problem by name for each trained parameter of `layers` that is not among `known`, which are those that replicas
// keep in step, and one for all `known` parameters that no layer has.
std::vector<Problem> unknown_parameters(const LayerList& layers, const Tensors& known);

// Of the store's parameters, by name: those whose type, shape or device is another; those that were frozen, where
// `sync` would move them; those whose values were replaced, where `sync` keeps values elsewhere. Looks at no value.
std::vector<Problem> unfollowed_changes(const ModuleStore& modules, const SyncSpec& sync);

}  // namespace braid
