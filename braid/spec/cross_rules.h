// The rules between fields, as one table. problems.cpp finds the value that repairs a broken rule.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/spec/fields.h"
#include "braid/spec/problems.h"

namespace braid::spec {

// The input of a rule. Every field that it reads keeps its own rule.
struct View {
  const RunSpec& spec;
  const HostLimits& limits;
};

struct CrossRule {
  Strings keys;  // what it reads; the first is the one at fault
  std::function<bool(const View&)> holds;
  std::function<std::string(const View&)> text;
};

const std::vector<CrossRule>& cross_rules();
// The part of them that is about the model alone.
std::vector<CrossRule> model_rules();
// And about what a schedule takes.
std::vector<CrossRule> schedule_rules();
// And about how it is cut into stages.
std::vector<CrossRule> partition_rules();
// And about replicas.
std::vector<CrossRule> sync_rules();
// And about what is kept.
std::vector<CrossRule> memory_rules();
// And about spikes and copies that are compared.
std::vector<CrossRule> supervision_rules();
// And about ranks on hosts.
std::vector<CrossRule> placement_rules();
// And about checkpoints, written and gone on from.
std::vector<CrossRule> checkpoint_rules();

// And about summing gradients over replicas.
std::vector<CrossRule> reduction_rules();

}  // namespace braid::spec
