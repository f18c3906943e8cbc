// The pieces of a model.
#include "braid/nn/model.h"

#include "braid/base/errors.h"
#include "braid/layout/parameters.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/nn/lower.h"

namespace braid::nn {

std::vector<ModelPiece> pieces_of(int begin, int end, int layers) {
  const int last = model::num_units(layers) - 1;
  check(0 <= begin && begin <= end && end <= last + 1, "units of the model");
  std::vector<ModelPiece> pieces;
  for (int unit = begin; unit < end; ++unit) {
    const int block = (unit + 1) / 2;
    const bool at_an_end = unit == 0 || unit == last, second = !at_an_end && unit % 2 == 0;
    if (second && !pieces.empty()) {
      pieces.back().part = layout::BlockPart::Whole;
    } else {
      pieces.push_back({block, at_an_end ? layout::BlockPart::Whole
                               : second  ? layout::BlockPart::FeedForward
                                         : layout::BlockPart::Attention});
    }
  }
  return pieces;
}

layout::BlockSpec params_of(const ModelPiece& piece, const layout::ModelParams& params) {
  layout::BlockSpec block = params.at(piece.block);
  if (piece.part == layout::BlockPart::Whole) return block;
  std::erase_if(block.params, [&](const layout::ParamSpec& param) { return param.part != piece.part; });
  check(!block.params.empty(), "transformer blocks alone have halves");
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
