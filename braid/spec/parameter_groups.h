// The group of a parameter among optimizer.groups.
#pragma once

#include <string>

#include "braid/spec/optimizer_spec.h"

namespace braid::spec {

// Returns true if the group's pattern matches `name`.
bool matches(const ParameterGroup& group, const std::string& name);

// Returns true if the group changes a rate.
bool has_rates(const ParameterGroup& group);

// Returns the first group that matches the parameter called `name`; null if none does.
const ParameterGroup* group_of(const OptimizerSpec& spec, const std::string& name);

// Returns true if the parameter called `name` is not trained.
bool is_frozen(const OptimizerSpec& spec, const std::string& name);

// Returns true if a group is frozen.
bool has_frozen_group(const OptimizerSpec& spec);

}  // namespace braid::spec
