// Units to pieces.
#include "braid/nn/model_piece.h"

#include "braid/base/errors.h"
#include "braid/spec/model_shape.h"

namespace braid::nn {

std::vector<ModelPiece> pieces_of(int begin, int end, int layers) {
  const int last = spec::num_units(layers) - 1;
  check(0 <= begin && begin <= end && end <= last + 1, "units of the model");
  std::vector<ModelPiece> pieces;
  for (int unit = begin; unit < end; ++unit) {
    const int block = (unit + 1) / 2;
    const bool at_an_end = unit == 0 || unit == last, second = !at_an_end && unit % 2 == 0;
    if (second && !pieces.empty()) {
      pieces.back().part = param::BlockPart::Whole;
    } else {
      pieces.push_back({block, at_an_end ? param::BlockPart::Whole
                               : second  ? param::BlockPart::FeedForward
                                         : param::BlockPart::Attention});
    }
  }
  return pieces;
}

param::BlockSpec params_of(const ModelPiece& piece, const param::ModelParams& params) {
  param::BlockSpec block = params.at(piece.block);
  if (piece.part == param::BlockPart::Whole) return block;
  std::erase_if(block.params, [&](const param::ParamSpec& param) { return param.part != piece.part; });
  check(!block.params.empty(), "transformer blocks alone have halves");
  return block;
}

}  // namespace braid::nn
