// One step of a whole model on thread ranks with formula weights and tokens.
#pragma once

#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>

#include "braid/layout/parameters.h"
#include "braid/model/shape.h"
#include "braid/nn/model.h"
#include "braid/spec/masking.h"
#include "tests/nn/rank_world.h"

namespace braid {

enum class Cut { Blocks, HalfBlocks };

struct ModelRun {
  ModelSpec spec;
  int ranks = 1;
  at::ScalarType dtype = at::kDouble;
  int microbatches = 1;
  int64_t batch = 2;
  Cut cut = Cut::Blocks;  // what the model is run in
};

inline ModelSpec tiny_gpt2() {
  ModelSpec spec;
  spec.layers = 2;
  spec.heads = 6;
  spec.width = 24;
  spec.context = 8;
  spec.vocab = 19;
  spec.vocab_multiple = 1;
  return spec;
}

// Six heads in three groups.
inline ModelSpec tiny_llama() {
  ModelSpec spec = tiny_gpt2();
  spec.family = ModelFamily::Llama;
  spec.kv_heads = 3;
  spec.width = 48;
  spec.ffn = 72;
  return spec;
}

// A head of its own, and scaled rotary frequencies: one stays, one is between, two are divided.
inline ModelSpec tiny_llama3() {
  ModelSpec spec = tiny_llama();
  spec.output_weights = OutputWeights::Untied;
  spec.rope_base = 100;
  spec.rope_scaling = RopeScaling::Llama3;
  spec.rope_context = 32;
  return spec;
}

// A window of three of the eight tokens.
inline ModelSpec tiny_mistral() {
  ModelSpec spec = tiny_llama();
  spec.window = 3;
  return spec;
}

inline ModelSpec tiny_qwen2() {
  ModelSpec spec = tiny_llama();
  spec.qkv_bias = true;
  return spec;
}

// Heads of 10 features in a width that would give them 8.
inline ModelSpec tiny_qwen3() {
  ModelSpec spec = tiny_llama();
  spec.output_weights = OutputWeights::Untied;
  spec.head_width = 10;
  spec.qk_norm = true;
  return spec;
}

// Layers with a window of three tokens and without one, both caps, and heads of 10 features.
inline ModelSpec tiny_gemma2() {
  ModelSpec spec = tiny_llama();
  spec.family = ModelFamily::Gemma2;
  spec.layers = 3;
  spec.head_width = 10;
  spec.window = 3;
  spec.attention_cap = 1.5;
  spec.logit_cap = 2;
  spec.query_scalar = 7;
  return spec;
}

// Predicts two tokens of each sequence of eight.
inline ModelSpec tiny_bert() {
  ModelSpec spec = tiny_gpt2();
  spec.family = ModelFamily::Bert;
  return spec;
}

struct RunModel {
  RunModel(const ModelRun& run, Communicator& tensor)
      : world(layout::model_params(run.spec, tensor.rank(), tensor.size()), tensor, run.dtype) {
    const int units = model::num_units(run.spec), step = run.cut == Cut::HalfBlocks ? 1 : units;
    for (int unit = 0; unit < units; unit += step) {
      for (const nn::ModelPiece& piece : nn::pieces_of(run.spec, unit, unit + step)) {
        blocks.push_back(nn::model_block(run.spec, piece, world.store, world.context));
      }
    }
  }
  at::Tensor forward(const nn::Microbatch& m) {
    at::Tensor x;
    for (const auto& block : blocks) x = block->forward(x, m);
    return x;
  }
  RankWorld world;
  std::vector<std::unique_ptr<nn::Block>> blocks;
};

inline nn::Microbatch run_microbatch(const ModelRun& run, int micro) {
  const std::string suffix = micro == 0 ? "" : std::to_string(micro);
  nn::Microbatch m;
  m.micro = micro;
  m.dropout_key = 100 + micro;
  m.tokens_bt = formula_integers("tokens" + suffix, {run.batch, run.spec.context}, run.spec.vocab);
  m.targets_bt = formula_integers("targets" + suffix, {run.batch, run.spec.context}, run.spec.vocab);
  if (spec::is_masked(run.spec)) {
    constexpr int64_t kPicked = 2;
    const int64_t part = run.spec.context / kPicked;
    m.rows_bj = formula_integers("rows", {run.batch, kPicked}, part).add_(at::arange(kPicked).mul_(part));
    m.targets_bt = m.targets_bt.narrow(1, 0, kPicked).contiguous();
  }
  return m;
}

// "lossK" of every microbatch, "logits" of microbatch 0 in evaluation, "grad.NAME": global tensors.
inline std::map<std::string, at::Tensor> model_step(const ModelRun& run) {
  Gathering results(run.ranks);
  run_ranks(run.ranks, [&](Communicator& group) {
    const int r = group.rank();
    RunModel model(run, group);
    {
      const at::NoGradGuard no_grad;
      nn::Microbatch m = run_microbatch(run, 0);
      m.training = false;
      m.targets_bt = m.rows_bj = at::Tensor();
      const at::Tensor logits = model.forward(m);
      EXPECT_FALSE(logits.requires_grad());
      const mesh::Index shape{run.batch, run.spec.context, run.spec.vocab};
      const int64_t padded = model::padded_vocab(run.spec, run.ranks);
      const mesh::Placement placement = mesh::split_dim(shape, 2, padded, {r, run.ranks, mesh::Axis::Tensor});
      // Padding is -inf here; the placement's promise of zeros is for parameters.
      results.put("logits", r, placement, logits.masked_fill(logits.isneginf(), 0));
    }
    model.world.sink->begin_step(run.microbatches);
    for (int micro = 0; micro < run.microbatches; ++micro) {
      const at::Tensor loss = model.forward(run_microbatch(run, micro));
      EXPECT_EQ(model.world.queue.pending(), 0);
      loss.backward();
      model.world.queue.run(micro);
      results.put_replicated("loss" + std::to_string(micro), r, loss);
    }
    results.put_gradients(r, model.world);
  });
  return results.global();
}

}  // namespace braid
