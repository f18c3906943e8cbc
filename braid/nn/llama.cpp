// The blocks of Llama: embedding, transformer blocks, head.
#include "braid/nn/llama.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/model/shape.h"
#include "braid/nn/attention.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/language_head.h"
#include "braid/nn/mlp.h"
#include "braid/nn/norms.h"
#include "braid/nn/residual_branch.h"

namespace braid::nn {
namespace {

class LlamaEmbedding final : public Block {
 public:
  LlamaEmbedding(const ModelSpec& spec, param::ParamStore& store, const RankContext& rank)
      : tokens_({&store["wte.weight"], 0}, rank), dropout_({spec.dropout, 0, 0}) {}

  at::Tensor forward(const at::Tensor&, const Microbatch& microbatch) override {
    return dropout_.forward(tokens_.forward(microbatch), microbatch);
  }

 private:
  VocabParallelEmbedding tokens_;
  Dropout dropout_;
};

// The branches of a transformer block: x + attention(norm_1(x)), then + mlp(norm_2(..)).
using LlamaAttentionBranch = ResidualBranch<Attention>;
using LlamaMlpBranch = ResidualBranch<GatedMlp>;

class LlamaHead final : public Block {
 public:
  LlamaHead(const ModelSpec& spec, param::ParamStore& store, const RankContext& rank)
      : norm_f_({&store["norm_f.weight"], nullptr, spec.norm_eps, kernels::NormKind::Rms}, rank),
        head_({last_use(store[model::head_table(spec) + ".weight"]), spec.vocab}, rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) override {
    return head_.forward(norm_f_.forward(x_btc, microbatch), microbatch);
  }

 private:
  Norm norm_f_;
  LanguageHead head_;
};

RotaryOptions rotary_options(const ModelSpec& spec) {
  RotaryOptions options{model::head_width(spec), spec.context, spec.rope_base, {}};
  if (spec.rope_scaling == RopeScaling::Llama3) {
    const auto context = static_cast<double>(spec.rope_context);
    options.scaling = {{spec.rope_factor, spec.rope_low_frequency, spec.rope_high_frequency, context}};
  }
  return options;
}

// The parameters of one transformer block.
class LlamaParams {
 public:
  LlamaParams(const ModelSpec& spec, int block, param::ParamStore& store) : spec_(spec), block_(block), store_(store) {}

  LlamaAttentionBranch::Options attention(int tensor_size) const {
    const auto rotary = std::make_shared<Rotary>(rotary_options(spec_), weight("norm_1")->data.options());
    ParallelLinearOptions qkv = linear("attention.qkv");
    if (spec_.qkv_bias) qkv.bias = param("attention.qkv.bias");
    Attention::Options layer{qkv,
                             linear("attention.projection"),
                             spec_.heads / tensor_size,
                             model::num_kv_heads(spec_) / tensor_size,
                             rotary,
                             {},
                             spec_.window};
    if (spec_.qk_norm) layer.norms = {weight("attention.norm_q"), weight("attention.norm_k"), spec_.norm_eps};
    return {norm("norm_1"), layer, nullptr, {spec_.dropout, block_, 0}};
  }
  LlamaMlpBranch::Options mlp() const {
    const GatedMlp::Options layer{linear("mlp.gate_up"), linear("mlp.down")};
    return {norm("norm_2"), layer, nullptr, {spec_.dropout, block_, 1}};
  }

 private:
  const param::Parameter* param(const std::string& name) const {
    return &store_[cat("blocks.", block_ - 1, ".", name)];
  }
  const param::Parameter* weight(const std::string& name) const { return param(name + ".weight"); }
  Norm::Options norm(const std::string& name) const {
    return {weight(name), nullptr, spec_.norm_eps, kernels::NormKind::Rms};
  }
  ParallelLinearOptions linear(const std::string& name) const { return {{weight(name), 0}, nullptr}; }

  const ModelSpec& spec_;
  int block_;
  param::ParamStore& store_;
};

}  // namespace

std::unique_ptr<Block> llama_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                   const RankContext& rank) {
  check(0 <= piece.block && piece.block < spec.layers + 2, "a block of the model");
  if (piece.block == 0) return std::make_unique<LlamaEmbedding>(spec, store, rank);
  if (piece.block == spec.layers + 1) return std::make_unique<LlamaHead>(spec, store, rank);
  const LlamaParams params(spec, piece.block, store);
  const auto attention = [&] { return params.attention(rank.tensor.size()); };
  const auto mlp = [&] { return params.mlp(); };
  return block_part<LlamaAttentionBranch, LlamaMlpBranch>(piece.part, attention, mlp, rank);
}

}  // namespace braid::nn
