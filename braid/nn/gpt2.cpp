// The blocks of GPT-2: embedding, transformer blocks, head.
#include "braid/nn/gpt2.h"

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/model/families.h"
#include "braid/nn/attention.h"
#include "braid/nn/dropout.h"
#include "braid/nn/embedding.h"
#include "braid/nn/key_value_cache.h"
#include "braid/nn/language_head.h"
#include "braid/nn/mlp.h"
#include "braid/nn/norms.h"
#include "braid/nn/residual_branch.h"

namespace braid::nn {
namespace {

class Gpt2Embedding final : public Block {
 public:
  Gpt2Embedding(const ModelSpec& spec, param::ParamStore& store, const RankContext& rank)
      : tokens_({&store["wte.weight"], 0}, rank),
        positions_{&store["wpe.weight"], 0},
        dropout_({spec.dropout, 0, 0}),
        rank_(rank) {}

  at::Tensor forward(const at::Tensor&, const Microbatch& microbatch) override {
    const at::Tensor x_btc = tokens_.forward(microbatch);
    if (microbatch.cache) return add_positions_at_(x_btc, positions_.param->data, microbatch.cache->places_n());
    return dropout_.forward(add_positions_(x_btc, {&rank_.weight_grads, positions_, microbatch.micro}), microbatch);
  }

 private:
  VocabParallelEmbedding tokens_;
  ParamUse positions_;
  Dropout dropout_;
  RankContext rank_;
};

// The branches of a transformer block: x + attention(ln_1(x)), then + mlp(ln_2(..)).
using Gpt2AttentionBranch = ResidualBranch<Attention>;
using Gpt2MlpBranch = ResidualBranch<Mlp>;

class Gpt2Head final : public Block {
 public:
  Gpt2Head(const ModelSpec& spec, param::ParamStore& store, const RankContext& rank)
      : ln_f_({&store["ln_f.weight"], &store["ln_f.bias"], spec.norm_eps}, rank),
        head_({last_use(store[model::head_table(spec) + ".weight"]), spec.vocab}, rank) {}

  at::Tensor forward(const at::Tensor& x_btc, const Microbatch& microbatch) override {
    return head_.forward(ln_f_.forward(x_btc, microbatch), microbatch);
  }

 private:
  Norm ln_f_;
  LanguageHead head_;
};

// The parameters of one transformer block. The bias of a branch's last product is added when the branch joins the
// residual.
class Gpt2Params {
 public:
  Gpt2Params(const ModelSpec& spec, int block, param::ParamStore& store) : spec_(spec), block_(block), store_(store) {}

  Gpt2AttentionBranch::Options attention(int tensor_size) const {
    const Attention::Options layer{linear("attention.qkv"), product("attention.projection"), spec_.heads / tensor_size,
                                   0, nullptr};
    return {norm("ln_1"), layer, param("attention.projection.bias"), {spec_.dropout, block_, 0}};
  }
  Gpt2MlpBranch::Options mlp() const {
    return {norm("ln_2"), {linear("mlp.up"), product("mlp.down")}, param("mlp.down.bias"), {spec_.dropout, block_, 1}};
  }

 private:
  const param::Parameter* param(const std::string& name) const {
    return &store_[cat("blocks.", block_ - 1, ".", name)];
  }
  Norm::Options norm(const std::string& name) const {
    return {param(name + ".weight"), param(name + ".bias"), spec_.norm_eps};
  }
  ParallelLinearOptions product(const std::string& name) const { return {{param(name + ".weight"), 0}, nullptr}; }
  ParallelLinearOptions linear(const std::string& name) const {
    return {{param(name + ".weight"), 0}, param(name + ".bias")};
  }

  const ModelSpec& spec_;
  int block_;
  param::ParamStore& store_;
};

}  // namespace

std::unique_ptr<Block> gpt2_block(const ModelSpec& spec, ModelPiece piece, param::ParamStore& store,
                                  const RankContext& rank) {
  check(0 <= piece.block && piece.block < spec.layers + 2, "a block of the model");
  if (piece.block == 0) return std::make_unique<Gpt2Embedding>(spec, store, rank);
  if (piece.block == spec.layers + 1) return std::make_unique<Gpt2Head>(spec, store, rank);
  const Gpt2Params params(spec, piece.block, store);
  const auto attention = [&] { return params.attention(rank.tensor.size()); };
  const auto mlp = [&] { return params.mlp(); };
  return block_part<Gpt2AttentionBranch, Gpt2MlpBranch>(piece.part, attention, mlp, rank);
}

}  // namespace braid::nn
