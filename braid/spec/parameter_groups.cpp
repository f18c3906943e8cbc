// Finds groups by the patterns of file names.
#include "braid/spec/parameter_groups.h"

#include <fnmatch.h>

#include <algorithm>

namespace braid::spec {

bool matches(const ParameterGroup& group, const std::string& name) {
  return ::fnmatch(group.match.c_str(), name.c_str(), 0) == 0;
}

bool has_rates(const ParameterGroup& group) { return group.lr_scale != 1 || group.weight_decay; }

const ParameterGroup* group_of(const OptimizerSpec& spec, const std::string& name) {
  const auto found =
      std::ranges::find_if(spec.groups, [&](const ParameterGroup& group) { return matches(group, name); });
  return found == spec.groups.end() ? nullptr : &*found;
}

bool is_frozen(const OptimizerSpec& spec, const std::string& name) {
  const ParameterGroup* const group = group_of(spec, name);
  return group && group->frozen;
}

bool has_frozen_group(const OptimizerSpec& spec) { return std::ranges::any_of(spec.groups, &ParameterGroup::frozen); }

}  // namespace braid::spec
