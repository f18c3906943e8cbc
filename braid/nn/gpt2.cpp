// The blocks of GPT-2: embedding, transformer blocks, head.
#include "braid/nn/gpt2.h"

#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/attention.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/language_head.h"
#include "braid/nn/layer_norm.h"
#include "braid/nn/mlp.h"
#include "braid/nn/model_params.h"

namespace braid {
namespace {

class EmbeddingBlock final : public Block {
 public:
  EmbeddingBlock(const ModelSpec& spec, ParamStore& store, const RankContext& rank)
      : tokens_({&store["wte.weight"], 0}, rank),
        positions_{&store["wpe.weight"], 0},
        dropout_({spec.dropout, 0, 0}, rank),
        rank_(rank) {}

  at::Tensor forward(const at::Tensor&, const Microbatch& microbatch) override {
    const at::Tensor x_btc = tokens_.forward(microbatch);
    return dropout_.forward(add_positions_(x_btc, {&rank_.weight_grads, positions_, microbatch.micro}), microbatch);
  }

 private:
  VocabParallelEmbedding tokens_;
  ParamUse positions_;
  Dropout dropout_;
  RankContext rank_;
};

// x + attention(ln_1(x)), then + mlp(ln_2(..)).
class TransformerBlock final : public Block {
 public:
  struct Options {
    LayerNorm::Options ln_1, ln_2;
    Attention::Options attention;
    Mlp::Options mlp;
    const Parameter *attention_bias, *mlp_bias;  // of the row-parallel products; they join with the branch
    Dropout::Options attention_dropout, mlp_dropout;
  };
  TransformerBlock(const Options& options, const RankContext& rank)
      : ln_1_(options.ln_1, rank),
        ln_2_(options.ln_2, rank),
        attention_(options.attention, rank),
        mlp_(options.mlp, rank),
        attention_bias_(options.attention_bias),
        mlp_bias_(options.mlp_bias),
        attention_dropout_(options.attention_dropout, rank),
        mlp_dropout_(options.mlp_dropout, rank),
        rank_(rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& m) override {
    const Residual x = ln_1_.open(x_btc, m);
    const Branch attention{attention_.forward(x.normed_btc, m), attention_bias_};
    const Residual y = ln_2_.join(x.sum_btc, dropped(attention, attention_dropout_, rank_, m), m);
    const Branch mlp{mlp_.forward(y.normed_btc, m), mlp_bias_};
    return join(y.sum_btc, dropped(mlp, mlp_dropout_, rank_, m), rank_, m);
  }

 private:
  LayerNorm ln_1_, ln_2_;
  Attention attention_;
  Mlp mlp_;
  const Parameter *attention_bias_, *mlp_bias_;
  Dropout attention_dropout_, mlp_dropout_;
  RankContext rank_;
};

class HeadBlock final : public Block {
 public:
  HeadBlock(const ModelSpec& spec, ParamStore& store, const RankContext& rank)
      : ln_f_({&store["ln_f.weight"], &store["ln_f.bias"], spec.norm_eps}, rank),
        head_({{&store[head_table(spec)], token_table_uses(spec) - 1}, spec.vocab}, rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) override {
    return head_.forward(ln_f_.forward(x_btc, microbatch), microbatch);
  }

 private:
  LayerNorm ln_f_;
  LanguageHead head_;
};

TransformerBlock::Options transformer_options(const ModelSpec& spec, int index, ParamStore& store, int tensor_size) {
  const auto param = [&](const char* name) { return &store[cat("blocks.", index - 1, ".", name)]; };
  const auto linear = [&](const std::string& name) {
    return ParallelLinearOptions{{param((name + ".weight").c_str()), 0}, param((name + ".bias").c_str())};
  };
  TransformerBlock::Options options;
  options.ln_1 = {param("ln_1.weight"), param("ln_1.bias"), spec.norm_eps};
  options.ln_2 = {param("ln_2.weight"), param("ln_2.bias"), spec.norm_eps};
  options.attention = {linear("attention.qkv"), linear("attention.projection"), spec.heads / tensor_size, 0, nullptr};
  options.mlp = {linear("mlp.up"), linear("mlp.down")};
  options.attention_bias = std::exchange(options.attention.projection.bias, nullptr);
  options.mlp_bias = std::exchange(options.mlp.down.bias, nullptr);
  options.attention_dropout = {spec.dropout, index, 0};
  options.mlp_dropout = {spec.dropout, index, 1};
  return options;
}

}  // namespace

std::unique_ptr<Block> gpt2_block(const ModelSpec& spec, int index, ParamStore& store, const RankContext& rank) {
  check(0 <= index && index < spec.layers + 2, "a block of the model");
  if (index == 0) return std::make_unique<EmbeddingBlock>(spec, store, rank);
  if (index == spec.layers + 1) return std::make_unique<HeadBlock>(spec, store, rank);
  return std::make_unique<TransformerBlock>(transformer_options(spec, index, store, rank.tensor.size()), rank);
}

}  // namespace braid
