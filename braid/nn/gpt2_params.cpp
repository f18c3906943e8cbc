// The list of GPT-2's parameters. Knows no tensor: checkpoints and planners read it too.
#include <cmath>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/gpt2.h"

namespace braid {
namespace {

constexpr Init kZeros{Init::Kind::Zeros};
constexpr Init kOnes{Init::Kind::Ones};

// One tensor rank's cuts.
struct Cut {
  int part, parts;
  Placement outputs(const Index& shape) const { return split_dim(shape, 0, shape[0], {part, parts, Axis::Tensor}); }
  Placement inputs(const Index& shape) const { return split_dim(shape, 1, shape[1], {part, parts, Axis::Tensor}); }
  Placement qkv(const Index& shape) const { return split_segments(shape, 0, 3, {part, parts, Axis::Tensor}); }
};

void add_norm(BlockSpec& block, const std::string& name, int64_t width) {
  block.params.push_back({name + ".weight", replicated({width}), kOnes, WeightDecay::No});
  block.params.push_back({name + ".bias", replicated({width}), kZeros, WeightDecay::No});
}

void add_linear(BlockSpec& block, const std::string& name, const std::pair<Placement, Placement>& weight_bias,
                double std) {
  block.params.push_back({name + ".weight", weight_bias.first, {Init::Kind::Normal, std}, WeightDecay::Yes});
  block.params.push_back({name + ".bias", weight_bias.second, kZeros, WeightDecay::No});
}

ParamSpec token_table(const ModelSpec& spec, const Cut& cut, int use) {
  const Placement placement =
      split_dim({spec.vocab, spec.width}, 0, padded_vocab(spec, cut.parts), {cut.part, cut.parts, Axis::Tensor});
  return {"wte.weight", placement, {Init::Kind::Normal, spec.init_std}, WeightDecay::Yes, use, 2};
}

BlockSpec transformer_params(const ModelSpec& spec, const Cut& cut, const std::string& name) {
  const int64_t c = spec.width, ffn = ffn_width(spec);
  const double residual_std = spec.init_std / std::sqrt(2.0 * spec.layers);
  BlockSpec block{name, {}};
  add_norm(block, name + ".ln_1", c);
  add_linear(block, name + ".attention.qkv", {cut.qkv({3 * c, c}), cut.qkv({3 * c})}, spec.init_std);
  add_linear(block, name + ".attention.projection", {cut.inputs({c, c}), replicated({c})}, residual_std);
  add_norm(block, name + ".ln_2", c);
  add_linear(block, name + ".mlp.up", {cut.outputs({ffn, c}), cut.outputs({ffn})}, spec.init_std);
  add_linear(block, name + ".mlp.down", {cut.inputs({c, ffn}), replicated({c})}, residual_std);
  return block;
}

}  // namespace

ModelParams gpt2_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  check(spec.vocab > 0, "the vocabulary is resolved before the model is listed");
  check(spec.heads % tensor_size == 0 && spec.width % spec.heads == 0, "heads divide the width and over the ranks");
  const Cut cut{tensor_rank, tensor_size};
  BlockSpec embedding{"embedding", {token_table(spec, cut, 0)}};
  embedding.params.push_back(
      {"wpe.weight", replicated({spec.context, spec.width}), {Init::Kind::Normal, spec.init_std}, WeightDecay::Yes});
  ModelParams params{std::move(embedding)};
  for (int layer = 0; layer < spec.layers; ++layer) {
    params.push_back(transformer_params(spec, cut, cat("blocks.", layer)));
  }
  BlockSpec head{"head", {}};
  add_norm(head, "ln_f", spec.width);
  head.params.push_back(token_table(spec, cut, 1));
  params.push_back(std::move(head));
  return params;
}

}  // namespace braid
