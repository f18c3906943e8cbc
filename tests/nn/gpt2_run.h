// One step of a whole GPT-2 on thread ranks with formula weights and tokens.
#pragma once

#include <ATen/core/grad_mode.h>

#include "braid/nn/gpt2.h"
#include "tests/nn/rank_world.h"

namespace braid {

struct Gpt2Run {
  ModelSpec spec;
  int ranks = 1;
  at::ScalarType dtype = at::kDouble;
  int microbatches = 1;
  int64_t batch = 2;
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

struct Gpt2Model {
  Gpt2Model(const Gpt2Run& run, Communicator& tensor)
      : world(gpt2_params(run.spec, tensor.rank(), tensor.size()), tensor, run.dtype) {
    for (int i = 0; i < run.spec.layers + 2; ++i) blocks.push_back(gpt2_block(run.spec, i, world.store, world.context));
  }
  at::Tensor forward(const Microbatch& m) {
    at::Tensor x;
    for (const auto& block : blocks) x = block->forward(x, m);
    return x;
  }
  RankWorld world;
  std::vector<std::unique_ptr<Block>> blocks;
};

inline Microbatch gpt2_microbatch(const Gpt2Run& run, int micro) {
  const std::string suffix = micro == 0 ? "" : std::to_string(micro);
  Microbatch m;
  m.micro = micro;
  m.dropout_key = 100 + micro;
  m.tokens_bt = formula_integers("tokens" + suffix, {run.batch, run.spec.context}, run.spec.vocab);
  m.targets_bt = formula_integers("targets" + suffix, {run.batch, run.spec.context}, run.spec.vocab);
  return m;
}

// "lossK" of every microbatch, "logits" of microbatch 0 in evaluation, "grad.NAME": global tensors.
inline std::map<std::string, at::Tensor> gpt2_step(const Gpt2Run& run) {
  Gathering results(run.ranks);
  run_ranks(run.ranks, [&](Communicator& group) {
    const int r = group.rank();
    Gpt2Model model(run, group);
    {
      const at::NoGradGuard no_grad;
      Microbatch m = gpt2_microbatch(run, 0);
      m.training = false;
      m.targets_bt = at::Tensor();
      const at::Tensor logits = model.forward(m);
      EXPECT_FALSE(logits.requires_grad());
      const Index shape{run.batch, run.spec.context, run.spec.vocab};
      const int64_t padded = padded_vocab(run.spec, run.ranks);
      const Placement placement = split_dim(shape, 2, padded, {r, run.ranks, Axis::Tensor});
      // Padding is -inf here; the placement's promise of zeros is for parameters.
      results.put("logits", r, placement, logits.masked_fill(logits.isneginf(), 0));
    }
    model.world.sink->begin_step(run.microbatches);
    for (int micro = 0; micro < run.microbatches; ++micro) {
      const at::Tensor loss = model.forward(gpt2_microbatch(run, micro));
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
