// The interpreter of a graph that lists parameters.
#include "braid/layout/parameters.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/layout/tensor_sums.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"

namespace braid::layout {
namespace {

bool is_split(const model::Dim& dim) {
  return model::kTensorLetters.find(dim.segments[0][0]) != std::string_view::npos;
}

class Lister {
 public:
  Lister(const ModelSpec& spec, const model::ModelGraph& graph, mesh::Share share)
      : graph_(graph),
        extents_(model::extents_of(spec, 1, 1)),
        padded_vocab_(model::padded_vocab(spec, share.parts)),
        key_head_parts_(model::key_head_parts(spec, share.parts)),
        share_(share) {
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
        params.params.push_back({name, placement(param.dims), param.init, param.decay, uses_[name]++, 1, param.linear,
                                 part_of(ops, static_cast<int>(number))});
      }
    }
    return params;
  }

  static int part_of(const model::BlockGraph& block, int op) {
    return static_cast<int>(std::ranges::count_if(block.cuts, [&](int cut) { return cut <= op; }));
  }

  mesh::Placement placement(const model::Dims& dims) const {
    const mesh::Index shape = extents_.shape(dims);
    const auto split = std::ranges::find_if(dims, is_split);
    if (split == dims.end()) return mesh::replicated(shape);
    const int dim = static_cast<int>(split - dims.begin());
    if (split->segments[0] == "v") return mesh::split_dim(shape, dim, padded_vocab_, share_);
    std::vector<mesh::Segment> segments;
    for (const std::string& letters : split->segments) {
      segments.push_back({static_cast<int64_t>(extents_.of(letters)), num_parts(letters)});
    }
    return mesh::split_segments(shape, dim, segments, share_);
  }

  // Key heads without their queries have fewer parts than there are ranks if there are fewer of them.
  int num_parts(std::string_view letters) const {
    const bool has = letters.find('k') != letters.npos, shares = letters.find('m') == letters.npos;
    return has && shares ? key_head_parts_ : share_.parts;
  }

  const model::ModelGraph& graph_;
  model::Extents extents_;
  int64_t padded_vocab_;
  int key_head_parts_;
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

int64_t count_params(const ModelSpec& spec) { return count_params(spec, model::graph_of(spec)); }

int64_t count_params(const ModelSpec& spec, const model::ModelGraph& graph) {
  const model::Extents extents = model::extents_of(spec, 1, 1);
  std::set<std::string> seen;
  double count = 0;
  for (size_t block = 0; block < graph.blocks.size(); ++block) {
    for (const model::Op& op : graph.block(block).ops) {
      for (const model::Param& param : op.params) {
        if (seen.insert(model::param_name(graph, block, param)).second) count += extents.num_elements(param.dims);
      }
    }
  }
  return static_cast<int64_t>(std::min(count, 0x1p62));
}

}  // namespace braid::layout
