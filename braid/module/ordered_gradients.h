// The order in which the gradients of a backward move to the sink: unit by unit, from the last one to the first, in
// whichever order they arrive. Ranks sum units in this order, though one of them may not have used a layer. Where
// parameters are gathered, sums and gathers are in one order on all ranks: gradients wait for end_from(), which is
// called at the same points on all ranks.
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
  // Moves the gradients of units that are used in no layer before `layer`, or zeros if they have not arrived. Called
  // when the backward of all layers from `layer` on is over, or does not run.
  void end_from(int layer);
  void end() { end_from(0); }  // of all

 private:
  param::ParamStore& store() const { return synced_.store(); }
  void move(int place) const { synced_.move_to_sink(store().params()[place], uses_.at(place), micro_); }

  const SyncedModules& synced_;
  const Uses& uses_;
  const int micro_;
  std::vector<int> first_layer_;                 // by unit, if parameters are gathered; else 0
  std::map<int, std::set<int>> left_, waiting_;  // by unit: places that have not moved, and those of them that arrived
};

}  // namespace braid::modules
