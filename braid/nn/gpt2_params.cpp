// The list of GPT-2's parameters. It needs no tensors, because checkpoints and planners read it too.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/gpt2.h"
#include "braid/nn/model_params.h"

namespace braid::nn {
namespace {

layout::BlockSpec gpt2_layer_params(const ModelSpec& spec, mesh::Share share, const std::string& name) {
  const int64_t c = spec.width, ffn = model::ffn_width(spec);
  layout::BlockSpec block{name, {}};
  ParamList list(spec, share, block);
  list.begin(layout::BlockPart::Attention);
  list.add_norm(name + ".ln_1", Bias::With);
  list.add_column(name + ".attention.qkv", {c, c, c}, Bias::With);
  list.add_row(name + ".attention.projection", c, Bias::With);
  list.begin(layout::BlockPart::FeedForward);
  list.add_norm(name + ".ln_2", Bias::With);
  list.add_column(name + ".mlp.up", {ffn}, Bias::With);
  list.add_row(name + ".mlp.down", ffn, Bias::With);
  return block;
}

}  // namespace

layout::ModelParams gpt2_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  check(spec.vocab > 0, "the vocabulary is resolved before the model is listed");
  check(spec.heads % tensor_size == 0 && spec.width % spec.heads == 0, "heads divide the width and over the ranks");
  const mesh::Share share{tensor_rank, tensor_size, mesh::Axis::Tensor};
  layout::BlockSpec embedding{"embedding", {}}, head{"head", {}};
  ParamList at_start(spec, share, embedding), at_end(spec, share, head);
  at_start.add_token_table("wte.weight", 0, token_table_uses(spec));
  at_start.add_position_table("wpe.weight");
  at_end.add_norm("ln_f", Bias::With);
  at_end.add_head_table();

  layout::ModelParams params{std::move(embedding)};
  for (int layer = 0; layer < spec.layers; ++layer) {
    params.push_back(gpt2_layer_params(spec, share, cat("blocks.", layer)));
  }
  params.push_back(std::move(head));
  return params;
}

}  // namespace braid::nn
