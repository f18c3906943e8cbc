#include "braid/layout/state_blocks.h"

#include "braid/base/text.h"
#include "braid/layout/parameters.h"
#include "braid/mesh/element_blocks.h"
#include "braid/model/shape.h"
#include "braid/spec/parameter_groups.h"

namespace braid::layout {

std::vector<Problem> state_block_problems(const RunSpec& spec, const std::function<ModelParams(int)>& params_of) {
  const bool has_states = spec.optimizer.kind != OptimizerKind::Sgd || spec.optimizer.momentum > 0;
  if (spec.optimizer.state_dtype != StateType::Int8 || !has_states) return {};
  for (int rank = 0; rank < spec.mesh.tensor; ++rank) {
    for (const BlockSpec& block : params_of(rank)) {
      for (const ParamSpec& param : block.params) {
        const bool is_whole = mesh::has_whole_blocks(param.placement, kStateBlock);
        if (is_whole || spec::is_frozen(spec.optimizer, param.name)) continue;
        return {{"optimizer.state_dtype", cat('"', spec.optimizer.state_dtype, '"'),
                 cat("must be \"float32\" or \"bfloat16\" with mesh.tensor = ", spec.mesh.tensor,
                     ": a tensor rank's part of ", param.name, " is not whole blocks of ", kStateBlock,
                     " elements, which share a scale"),
                 "\"bfloat16\""}};
      }
    }
  }
  return {};
}

std::vector<Problem> state_block_problems(const RunSpec& spec) {
  const ModelSpec& model = spec.model;
  const int ranks = spec.mesh.tensor;
  const bool is_split = ranks > 1 && model::can_split_heads(model, ranks) && model::ffn_width(model) % ranks == 0;
  if (!is_split || model.vocab <= 0 || model.experts > 0) return {};
  return state_block_problems(spec, [&](int rank) { return model_params(spec.model, rank, spec.mesh.tensor); });
}

}  // namespace braid::layout
