#include "braid/param/collected_parameters.h"

#include <algorithm>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"

namespace braid::param {
namespace {

void add_use(Parameter& param, const layout::ParamSpec& spec) {
  const bool same = param.placement == spec.placement && param.init == spec.init && param.decay == spec.decay &&
                    param.linear == spec.linear && param.trained == spec.trained;
  check(same && param.uses == spec.uses, cat(spec.name, ": the places of a tied parameter describe it alike"));
  check(0 <= spec.use && spec.use < spec.uses, cat(spec.name, ": use ", spec.use, " of ", spec.uses));
  auto& uses = param.local_uses;
  const auto place = std::lower_bound(uses.begin(), uses.end(), spec.use);
  check(place == uses.end() || *place != spec.use, cat(spec.name, ": two blocks make use ", spec.use));
  uses.insert(place, spec.use);
}

}  // namespace

std::vector<Parameter> parameters_of(const std::vector<layout::BlockSpec>& blocks, model::Trained trained) {
  std::vector<Parameter> params;
  for (const layout::BlockSpec& block : blocks) {
    for (const layout::ParamSpec& spec : block.params) {
      if (spec.trained != trained) continue;
      auto found = std::find_if(params.begin(), params.end(), [&](const Parameter& p) { return p.name == spec.name; });
      if (found == params.end()) {
        Parameter param{spec.name,
                        spec.placement,
                        spec.init,
                        spec.decay,
                        spec.linear,
                        spec.trained,
                        static_cast<int>(params.size()),
                        spec.uses};
        found = params.insert(params.end(), std::move(param));
      }
      add_use(*found, spec);
    }
  }
  return params;
}

std::vector<int> first_blocks(const std::vector<Parameter>& params, const std::vector<layout::BlockSpec>& blocks) {
  std::vector<int> found;
  for (const Parameter& param : params) {
    const auto has_it = [&](const layout::BlockSpec& block) {
      return std::any_of(block.params.begin(), block.params.end(), [&](auto& spec) { return spec.name == param.name; });
    };
    found.push_back(static_cast<int>(std::find_if(blocks.begin(), blocks.end(), has_it) - blocks.begin()));
  }
  return found;
}

}  // namespace braid::param
