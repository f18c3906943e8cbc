// The list of Llama's parameters. Knows no tensor: checkpoints and planners read it too.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/llama.h"
#include "braid/nn/model_params.h"

namespace braid {
namespace {

BlockSpec llama_layer_params(const ModelSpec& spec, Share share, const std::string& name) {
  const int64_t c = spec.width, kv = int64_t{num_kv_heads(spec)} * head_width(spec), ffn = ffn_width(spec);
  BlockSpec block{name, {}};
  ParamList list(spec, share, block);
  list.begin(BlockPart::Attention);
  list.add_norm(name + ".norm_1", Bias::Without);
  list.add_column(name + ".attention.qkv", {c, kv, kv}, Bias::Without);
  list.add_row(name + ".attention.projection", c, Bias::Without);
  list.begin(BlockPart::FeedForward);
  list.add_norm(name + ".norm_2", Bias::Without);
  list.add_column(name + ".mlp.gate_up", {ffn, ffn}, Bias::Without);
  list.add_row(name + ".mlp.down", ffn, Bias::Without);
  return block;
}

}  // namespace

ModelParams llama_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  check(spec.vocab > 0, "the vocabulary is resolved before the model is listed");
  check(spec.width % spec.heads == 0 && spec.heads % num_kv_heads(spec) == 0, "heads divide the width and form groups");
  check(num_kv_heads(spec) % tensor_size == 0, "key and value heads divide over the ranks");
  const Share share{tensor_rank, tensor_size, Axis::Tensor};
  BlockSpec embedding{"embedding", {}}, head{"head", {}};
  ParamList at_start(spec, share, embedding), at_end(spec, share, head);
  at_start.add_token_table("wte.weight", 0, token_table_uses(spec));
  at_end.add_norm("norm_f", Bias::Without);
  at_end.add_head_table();

  ModelParams params{std::move(embedding)};
  for (int layer = 0; layer < spec.layers; ++layer) {
    params.push_back(llama_layer_params(spec, share, cat("blocks.", layer)));
  }
  params.push_back(std::move(head));
  return params;
}

}  // namespace braid
