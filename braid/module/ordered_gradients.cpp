#include "braid/module/ordered_gradients.h"

#include <iterator>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::modules {

OrderedGradients::OrderedGradients(const SyncedModules& synced, int num_layers, const Uses& uses, int micro)
    : synced_(synced), uses_(uses), micro_(micro) {
  first_layer_.resize(store().units().size());
  for (int layer = num_layers - 1; layer >= 0 && store().shards_parameters(); --layer) {
    for (const int unit : store().gathered_by_block(layer)) first_layer_[unit] = layer;
  }
  for (const auto& [place, of_place] : uses) left_[store().unit_of(store().params()[place])].insert(place);
}

void OrderedGradients::arrived(const param::Parameter& param) {
  const auto of_unit = left_.find(store().unit_of(param));
  if (of_unit == left_.end() || !of_unit->second.contains(param.index)) {
    throw ConfigError(
        {{param.name, "", "must be a parameter of the layers that use it: a function's are LayerOptions::parameters",
          ""}});
  }
  if (store().shards_parameters()) return;
  waiting_[of_unit->first].insert(param.index);
  while (!left_.empty()) {
    const auto last = std::prev(left_.end());
    for (const int place : std::exchange(waiting_[last->first], {})) {
      move(place);
      last->second.erase(place);
    }
    if (!last->second.empty()) return;
    left_.erase(last);
  }
}

void OrderedGradients::end_from(int layer) {
  for (auto next = left_.end(); next != left_.begin();) {
    const auto unit = std::prev(next);
    if (first_layer_[unit->first] < layer) {
      next = unit;
      continue;
    }
    for (const int place : unit->second) move(place);
    next = left_.erase(unit);
  }
}

}  // namespace braid::modules
