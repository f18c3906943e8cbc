// The pieces of a model.
#include "braid/nn/model.h"

#include "braid/base/errors.h"
#include "braid/layout/parameters.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/nn/lower.h"

namespace braid::nn {

std::vector<ModelPiece> pieces_of(const ModelSpec& spec, int begin, int end) {
  const int parts = model::parts_of_layer(spec), last = model::num_units(spec) - 1;
  check(0 <= begin && begin <= end && end <= last + 1, "units of the model");
  std::vector<ModelPiece> pieces;
  for (int unit = begin; unit < end; ++unit) {
    if (unit == 0 || unit == last) {
      pieces.push_back({unit == 0 ? 0 : spec.layers + 1});
      continue;
    }
    const int block = 1 + (unit - 1) / parts, part = (unit - 1) % parts;
    if (pieces.empty() || pieces.back().block != block) pieces.push_back({block, part});
    pieces.back().end = part + 1 == parts ? ModelPiece::kLast : part + 1;
  }
  return pieces;
}

layout::BlockSpec params_of(const ModelPiece& piece, const layout::ModelParams& params) {
  layout::BlockSpec block = params.at(piece.block);
  std::erase_if(block.params, [&](const auto& param) { return param.part < piece.begin || param.part >= piece.end; });
  check(!block.params.empty(), "layers alone have parts");
  return block;
}

const ModelMaker& model_maker(const ModelSpec& spec) {
  check(spec.experts == 0, "a mixture of experts is planned alone, and refused before it is built");
  static constexpr ModelMaker kMaker{layout::model_params, model_block};
  return kMaker;
}

std::unique_ptr<Block> model_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank) {
  return lower(spec, model::graph_of(spec), piece, store, rank);
}

}  // namespace braid::nn
