// The table of rules between fields. problems.cpp finds the value that repairs a broken rule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/spec/fields.h"
#include "braid/spec/problems.h"

namespace braid::spec {

// The input of a rule. A rule is applied only if each field that it reads obeys the field's own rule.
struct View {
  const RunSpec& spec;
  const HostLimits& limits;
};

struct CrossRule {
  Strings keys;  // the keys that the rule reads; a problem is reported for the first
  std::function<bool(const View&)> holds;
  std::function<std::string(const View&)> text;
};

const std::vector<CrossRule>& cross_rules();
// Returns the rules of the model alone.
std::vector<CrossRule> model_rules();
// Returns the rules of context ranks.
std::vector<CrossRule> context_rules();
// Returns the rules of keys that only some schedules read.
std::vector<CrossRule> schedule_rules();
// Returns the rules of the partition into stages.
std::vector<CrossRule> partition_rules();
// Returns the rules of replicas.
std::vector<CrossRule> sync_rules();
// Returns the rules of the [memory] section and of optimizer.state_dtype.
std::vector<CrossRule> memory_rules();
// Returns the rules of loss spikes and of the comparison of replicas.
std::vector<CrossRule> supervision_rules();
// Returns the rules of the placement of ranks on hosts.
std::vector<CrossRule> placement_rules();
// Returns the rules of the objective.
std::vector<CrossRule> objective_rules();
// Returns the rules of writing checkpoints and resuming from them.
std::vector<CrossRule> checkpoint_rules();
// Returns the rules of the [run] section.
std::vector<CrossRule> launch_rules();

}  // namespace braid::spec
