// The rates of each parameter, found by its name, and the group of each block.
#include "braid/optim/parameter_groups.h"

#include <algorithm>

#include "braid/base/errors.h"
#include "braid/optim/cuda_table.h"
#include "braid/spec/parameter_groups.h"

namespace braid::optim {

GroupRates rates_of(const std::string& name, model::WeightDecay decay, const OptimizerSpec& spec) {
  const GroupRates usual{1, decay == model::WeightDecay::Yes ? spec.weight_decay : 0};
  const ParameterGroup* const group = spec::group_of(spec, name);
  return group ? GroupRates{group->lr_scale, group->weight_decay.value_or(usual.weight_decay)} : usual;
}

ParameterGroups::ParameterGroups(const OptimizerSpec& spec, const param::ParamStore& store)
    : of_blocks_(static_cast<size_t>(store.num_flat() / param::ParamStore::kAlign)) {
  for (const param::Parameter& param : store.params()) {
    const GroupRates rates = rates_of(param.name, param.decay, spec);
    const auto found = std::find(rates_.begin(), rates_.end(), rates);
    index_of_param_.push_back(static_cast<int>(found - rates_.begin()));
    if (found == rates_.end()) rates_.push_back(rates);
    // Fills all blocks up to the end. The next parameter overwrites its own blocks, so this group keeps only the
    // padding before them.
    std::fill(of_blocks_.begin() + param.offset / param::ParamStore::kAlign, of_blocks_.end(),
              static_cast<uint8_t>(index_of_param_.back()));
  }
  check(rates_.size() <= kMostGroups, "a kernel has room for the rates of all groups");
}

}  // namespace braid::optim
