// Reads the names of parameters off the model's graph.
#include "braid/spec/trained.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/model_flops.h"
#include "braid/model/shape.h"
#include "braid/model/trained.h"
#include "braid/spec/fields.h"
#include "braid/spec/masking.h"
#include "braid/spec/parameter_groups.h"
#include "braid/spec/partition.h"

namespace braid::spec {
namespace {

// Returns for each unit of the model whether one of its parameters is trained.
std::vector<bool> trained_units(const model::ModelGraph& graph, const ModelSpec& model) {
  std::vector<bool> trained;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    const bool is_layer = block > 0 && block + 1 < graph.blocks.size();
    const model::BlockGraph& ops = graph.block(block);
    for (int part = 0; part < (is_layer ? model::parts_of_layer(model) : 1); ++part) {
      const bool has_part = static_cast<size_t>(part) <= ops.cuts.size();
      trained.push_back(has_part &&
                        model::has_trained(is_layer ? ops.part(part) : std::span<const model::Op>(ops.ops)));
    }
  }
  return trained;
}

}  // namespace

model::ModelGraph trained_graph(const RunSpec& spec) {
  const model::ModelGraph graph = model::graph_of(spec.model);
  if (!has_frozen_group(spec.optimizer)) return graph;
  return model::with_frozen(graph, [&](const std::string& name) { return is_frozen(spec.optimizer, name); });
}

double model_flops_per_token(const RunSpec& spec) {
  model::Extents of_token = model::extents_of(spec.model, 1, 1);
  of_token['j'] = picked_fraction(spec);
  return model::model_flops_per_token(trained_graph(spec), of_token);
}

std::vector<StageBackward> stage_backwards(const RunSpec& spec, int num_stages) {
  if (!has_frozen_group(spec.optimizer)) return {};
  const std::vector<bool> trained = trained_units(trained_graph(spec), spec.model);
  const std::vector<int> first = stage_units(spec, num_stages);
  std::vector<StageBackward> backwards;
  bool trained_before = false;
  for (int stage = 0; stage < num_stages; ++stage) {
    const bool here = std::find(trained.begin() + first[stage], trained.begin() + first[stage + 1], true) !=
                      trained.begin() + first[stage + 1];
    backwards.push_back(here             ? StageBackward::Whole
                        : trained_before ? StageBackward::InputOnly
                                         : StageBackward::Nothing);
    trained_before = trained_before || here;
  }
  return backwards;
}

namespace {

// Returns the names of all parameters, each once.
Strings parameter_names(const model::ModelGraph& graph) {
  Strings names;
  std::set<std::string> seen;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    for (const model::Op& op : graph.block(block).ops) {
      for (const model::Param& param : op.params) {
        std::string name = model::param_name(graph, block, param);
        if (seen.insert(name).second) names.push_back(std::move(name));
      }
    }
  }
  return names;
}

// Returns the rule that the group breaks; "" if it breaks none.
std::string rule_broken_by(const ParameterGroup& group, const OptimizerSpec& spec, const Strings& names) {
  bool matches_any = false, has_any = false, all_frozen = true;
  for (const std::string& name : names) {
    if (!matches(group, name)) continue;
    const ParameterGroup& first = *group_of(spec, name);
    matches_any = true;
    has_any = has_any || &first == &group;
    all_frozen = all_frozen && first.frozen;
  }
  if (!matches_any) return cat("must match names of parameters, such as ", names.front(), " or ", names.back());
  if (group.frozen && !has_any && !all_frozen)
    return "must come before the groups that match its parameters: the first that matches counts";
  return "";
}

}  // namespace

std::vector<Problem> group_problems(const RunSpec& spec) {
  if (spec.optimizer.groups.empty()) return {};
  const Strings names = parameter_names(model::graph_of(spec.model));
  std::vector<Problem> found;
  for (const ParameterGroup& group : spec.optimizer.groups) {
    const std::string rule = rule_broken_by(group, spec.optimizer, names);
    if (!rule.empty()) found.push_back({"optimizer.groups", toml_text(group.match), rule, ""});
  }
  if (std::ranges::all_of(names, [&](const std::string& name) { return is_frozen(spec.optimizer, name); })) {
    found.push_back({"optimizer.groups", toml_text(spec.optimizer.groups),
                     cat("must leave parameters to train, such as ", names.back()), ""});
  }
  return found;
}

}  // namespace braid::spec
