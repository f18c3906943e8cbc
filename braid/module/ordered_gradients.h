// The order in which the gradients of a backward move to the sink: unit by unit, from the last one to the first, in
// whichever order they arrive. Ranks sum units in this order, though one of them may not have used a layer. Where
// parameters are gathered, the sums of a layer come before the gather of the layer before it (end_from).
#pragma once

#include <map>
#include <set>
#include <vector>

#include "braid/module/synced_modules.h"

namespace braid::modules {

class OrderedGradients {
 public:
  // By place of a parameter in the store: numbers of its uses in the layers that the backward runs through.
  using Uses = std::map<int, std::vector<int>>;

  // `synced`, which has a sink, and `uses` outlive this.
  OrderedGradients(const SyncedModules& synced, int num_layers, const Uses& uses, int micro);

  // Called when a parameter's .grad has all that this backward adds to it.
  void arrived(const param::Parameter& param);
  // Called when the backward of all layers from `layer` on is over, or does not run. Their parameters whose gradients
  // have not arrived get zeros, unless a layer before uses them.
  void end_from(int layer);
  void end() { end_from(0); }  // of all

 private:
  param::ParamStore& store() const { return synced_.store(); }

  const SyncedModules& synced_;
  const Uses& uses_;
  const int micro_;
  std::vector<int> first_layer_;                 // by unit, if parameters are gathered; else 0
  std::map<int, std::set<int>> left_, waiting_;  // by unit: places that have not moved, and those of them that arrived
};

}  // namespace braid::modules
