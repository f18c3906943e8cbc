// The blocks of Llama: embedding, transformer blocks, head.
#include "braid/nn/llama.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/nn/attention.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/gated_mlp.h"
#include "braid/nn/language_head.h"
#include "braid/nn/model_params.h"
#include "braid/nn/rms_norm.h"

namespace braid {
namespace {

class EmbeddingBlock final : public Block {
 public:
  EmbeddingBlock(const ModelSpec& spec, ParamStore& store, const RankContext& rank)
      : tokens_({&store["wte.weight"], 0}, rank), dropout_({spec.dropout, 0, 0}, rank) {}

  at::Tensor forward(const at::Tensor&, const Microbatch& microbatch) override {
    return dropout_.forward(tokens_.forward(microbatch), microbatch);
  }

 private:
  VocabParallelEmbedding tokens_;
  Dropout dropout_;
};

// x + attention(norm_1(x)), then + mlp(norm_2(..)).
class TransformerBlock final : public Block {
 public:
  struct Options {
    RmsNorm::Options norm_1, norm_2;
    Attention::Options attention;
    GatedMlp::Options mlp;
    Dropout::Options attention_dropout, mlp_dropout;
  };
  TransformerBlock(const Options& options, const RankContext& rank)
      : norm_1_(options.norm_1, rank),
        norm_2_(options.norm_2, rank),
        attention_(options.attention, rank),
        mlp_(options.mlp, rank),
        attention_dropout_(options.attention_dropout, rank),
        mlp_dropout_(options.mlp_dropout, rank),
        rank_(rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& m) override {
    const Residual x = norm_1_.open(x_btc, m);
    const Branch attention{attention_.forward(x.normed_btc, m)};
    const Residual y = norm_2_.join(x.sum_btc, dropped(attention, attention_dropout_, rank_, m), m);
    const Branch mlp{mlp_.forward(y.normed_btc, m)};
    return join(y.sum_btc, dropped(mlp, mlp_dropout_, rank_, m), rank_, m);
  }

 private:
  RmsNorm norm_1_, norm_2_;
  Attention attention_;
  GatedMlp mlp_;
  Dropout attention_dropout_, mlp_dropout_;
  RankContext rank_;
};

class HeadBlock final : public Block {
 public:
  HeadBlock(const ModelSpec& spec, ParamStore& store, const RankContext& rank)
      : norm_f_({&store["norm_f.weight"], spec.norm_eps}, rank),
        head_({{&store[head_table(spec)], token_table_uses(spec) - 1}, spec.vocab}, rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) override {
    return head_.forward(norm_f_.forward(x_btc, microbatch), microbatch);
  }

 private:
  RmsNorm norm_f_;
  LanguageHead head_;
};

RotaryOptions rotary_options(const ModelSpec& spec) {
  RotaryOptions options{head_width(spec), spec.context, spec.rope_base, {}};
  if (spec.rope_scaling == "llama3") {
    const auto context = static_cast<double>(spec.rope_context);
    options.scaling = {{spec.rope_factor, spec.rope_low_frequency, spec.rope_high_frequency, context}};
  }
  return options;
}

std::unique_ptr<Block> transformer_block(const ModelSpec& spec, int index, ParamStore& store, const RankContext& rank) {
  const auto param = [&](const char* name) { return &store[cat("blocks.", index - 1, ".", name, ".weight")]; };
  const auto linear = [&](const char* name) { return ParallelLinearOptions{{param(name), 0}, nullptr}; };
  const int parts = rank.tensor.size();
  TransformerBlock::Options options;
  options.norm_1 = {param("norm_1"), spec.norm_eps};
  options.norm_2 = {param("norm_2"), spec.norm_eps};
  options.attention = {linear("attention.qkv"), linear("attention.projection"), spec.heads / parts,
                       num_kv_heads(spec) / parts, nullptr};
  options.attention.rotary = std::make_shared<Rotary>(rotary_options(spec), param("norm_1")->data.options());
  options.mlp = {linear("mlp.gate_up"), linear("mlp.down")};
  options.attention_dropout = {spec.dropout, index, 0};
  options.mlp_dropout = {spec.dropout, index, 1};
  return std::make_unique<TransformerBlock>(options, rank);
}

}  // namespace

std::unique_ptr<Block> llama_block(const ModelSpec& spec, int index, ParamStore& store, const RankContext& rank) {
  check(0 <= index && index < spec.layers + 2, "a block of the model");
  if (index == 0) return std::make_unique<EmbeddingBlock>(spec, store, rank);
  if (index == spec.layers + 1) return std::make_unique<HeadBlock>(spec, store, rank);
  return transformer_block(spec, index, store, rank);
}

}  // namespace braid
