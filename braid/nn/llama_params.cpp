// The list of Llama's parameters. It needs no tensors, because checkpoints and planners read it too.
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/llama.h"
#include "braid/nn/model_params.h"

namespace braid::nn {
namespace {

layout::BlockSpec llama_layer_params(const ModelSpec& spec, mesh::Share share, const std::string& name) {
  const int64_t d = model::head_width(spec), q = spec.heads * d, kv = model::num_kv_heads(spec) * d,
                ffn = model::ffn_width(spec);
  layout::BlockSpec block{name, {}};
  ParamList list(spec, share, block);
  list.begin(layout::BlockPart::Attention);
  list.add_norm(name + ".norm_1", Bias::Without);
  list.add_column(name + ".attention.qkv", {q, kv, kv}, spec.qkv_bias ? Bias::With : Bias::Without);
  if (spec.qk_norm) {
    list.add_head_norm(name + ".attention.norm_q");
    list.add_head_norm(name + ".attention.norm_k");
  }
  list.add_row(name + ".attention.projection", q, Bias::Without);
  list.begin(layout::BlockPart::FeedForward);
  list.add_norm(name + ".norm_2", Bias::Without);
  list.add_column(name + ".mlp.gate_up", {ffn, ffn}, Bias::Without);
  list.add_row(name + ".mlp.down", ffn, Bias::Without);
  return block;
}

}  // namespace

layout::ModelParams llama_params(const ModelSpec& spec, int tensor_rank, int tensor_size) {
  check(spec.vocab > 0, "the vocabulary is resolved before the model is listed");
  check(spec.head_width > 0 || spec.width % spec.heads == 0, "heads divide the width where it gives their features");
  check(spec.heads % model::num_kv_heads(spec) == 0, "heads form groups");
  check(model::num_kv_heads(spec) % tensor_size == 0, "key and value heads divide over the ranks");
  const mesh::Share share{tensor_rank, tensor_size, mesh::Axis::Tensor};
  layout::BlockSpec embedding{"embedding", {}}, head{"head", {}};
  ParamList at_start(spec, share, embedding), at_end(spec, share, head);
  at_start.add_token_table("wte.weight", 0, token_table_uses(spec));
  at_end.add_norm("norm_f", Bias::Without);
  at_end.add_head_table();

  layout::ModelParams params{std::move(embedding)};
  for (int layer = 0; layer < spec.layers; ++layer) {
    params.push_back(llama_layer_params(spec, share, cat("blocks.", layer)));
  }
  params.push_back(std::move(head));
  return params;
}

}  // namespace braid::nn
