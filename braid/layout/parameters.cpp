// The interpreter of a graph that lists parameters.
#include "braid/layout/parameters.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/layout/dims_placement.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/model/trained.h"

namespace braid::layout {
namespace {

class Lister {
 public:
  Lister(const ModelSpec& spec, const model::ModelGraph& graph, mesh::Share share)
      : spec_(spec), graph_(graph), extents_(model::extents_of(spec, 1, 1)), share_(share) {
    check(spec.vocab > 0, "the vocabulary is resolved before the model is listed");
    check(spec.experts == 0, "a mixture of experts is planned alone, and refused before it is built");
    check(model::can_split_heads(spec, share.parts), "heads divide over the ranks");
  }

  ModelParams list() {
    ModelParams all;
    for (size_t block = 0; block < graph_.blocks.size(); ++block) all.push_back(block_params(block));
    for (BlockSpec& block : all) {
      for (ParamSpec& param : block.params) param.uses = uses_[param.name];
    }
    return all;
  }

 private:
  BlockSpec block_params(size_t block) {
    const model::BlockGraph& ops = graph_.block(block);
    BlockSpec params{model::block_name(graph_, block), {}};
    for (size_t number = 0; number < ops.ops.size(); ++number) {
      for (const model::Param& param : ops.ops[number].params) {
        const std::string name = model::param_name(graph_, block, param);
        params.params.push_back({name, placement_of(spec_, extents_, param.dims, share_), param.init, param.decay,
                                 uses_[name]++, 1, param.linear, part_of(ops, static_cast<int>(number))});
      }
    }
    return params;
  }

  static int part_of(const model::BlockGraph& block, int op) {
    return static_cast<int>(std::ranges::count_if(block.cuts, [&](int cut) { return cut <= op; }));
  }

  const ModelSpec& spec_;
  const model::ModelGraph& graph_;
  model::Extents extents_;
  mesh::Share share_;
  std::map<std::string, int> uses_;
};

}  // namespace

ModelParams model_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  return model_params(spec, model::graph_of(spec), {tensor_rank, tensor_size, mesh::Axis::Tensor});
}

ModelParams model_params(const ModelSpec& spec, const model::ModelGraph& graph, mesh::Share share) {
  return Lister(spec, graph, share).list();
}

void split_tokens(const model::ModelGraph& graph, mesh::Share share, ModelParams& params) {
  std::set<std::string> parts;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    for (const model::Op& op : graph.block(block).ops) {
      if (!splits_tokens(graph.block(block), op)) continue;
      for (const model::Param& param : op.params) parts.insert(model::param_name(graph, block, param));
    }
  }
  for (BlockSpec& block : params) {
    for (ParamSpec& param : block.params) {
      if (!parts.contains(param.name)) continue;
      for (mesh::Piece& piece : param.placement.pieces) piece.copy = share.part, piece.copies = share.parts;
    }
  }
}

namespace {

int64_t count_params_that(const std::function<bool(const model::Param& param)>& counts, const ModelSpec& spec,
                          const model::ModelGraph& graph) {
  const model::Extents extents = model::extents_of(spec, 1, 1);
  std::set<std::string> seen;
  double count = 0;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    for (const model::Op& op : graph.block(block).ops) {
      for (const model::Param& param : op.params) {
        if (counts(param) && seen.insert(model::param_name(graph, block, param)).second)
          count += extents.num_elements(param.dims);
      }
    }
  }
  return static_cast<int64_t>(std::min(count, 0x1p62));
}

}  // namespace

int64_t count_params(const ModelSpec& spec) { return count_params(spec, model::graph_of(spec)); }

int64_t count_params(const ModelSpec& spec, const model::ModelGraph& graph) {
  return count_params_that([](const model::Param&) { return true; }, spec, graph);
}

int64_t count_trained_params(const ModelSpec& spec, const model::ModelGraph& graph) {
  return count_params_that(model::is_trained, spec, graph);
}

}  // namespace braid::layout
