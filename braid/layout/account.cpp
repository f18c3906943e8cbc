// The interpreter of a graph that counts.
#include "braid/layout/account.h"

#include <span>

#include "braid/model/families.h"
#include "braid/model/model_flops.h"
#include "braid/model/op_table.h"

namespace braid::layout {
namespace {

ParamCount count_of(const model::OpAt& at, const model::Param& param) {
  const auto held = at.is_among_experts() ? HeldBy::ExpertRanks : HeldBy::EveryRank;
  const model::Dims dims(param.dims.begin() + (held == HeldBy::ExpertRanks ? 1 : 0), param.dims.end());
  return {at.op.kind, model::Terms(dims[0]), model::Terms(model::Dims(dims.begin() + 1, dims.end())), held};
}

PartAccount count(const model::BlockGraph& block, std::span<const model::Op> ops) {
  PartAccount account;
  for (const model::Op& op : ops) {
    const model::OpAt at{block, op};
    for (const model::Param& param : op.params) account.params.push_back(count_of(at, param));
  }
  return account;
}

}  // namespace

ModelAccount account_of(const ModelSpec& spec) {
  const model::ModelGraph graph = model::graph_of(spec);
  const model::BlockGraph &embedding = graph.kinds.front(), &layer = graph.kinds[1], &head = graph.kinds.back();
  const model::Extents of_token = model::extents_of(spec, 1, 1);
  const std::span at_start(embedding.ops), at_end(head.ops);
  return {spec,
          of_token,
          model::model_flops_per_token(graph, of_token),
          count(embedding, at_start.first(1)),
          count(embedding, at_start.subspan(1)),
          count(layer, layer.part(0)),
          count(layer, layer.part(1)),
          count(head, at_end.first(at_end.size() - 1))};
}

}  // namespace braid::layout
