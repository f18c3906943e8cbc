// Layouts whose ranks have parts of sequences: small models, and what holds for every such layout.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <string>

#include "tests/train/layout_run.h"

namespace braid::train::token_parts {

inline RunSpec gpt2() {
  RunSpec spec = tiny_spec(4, 8);
  spec.model.layers = 4;
  spec.model.context = 24;
  spec.train.steps = 2;
  spec.train.microbatch = 2;
  spec.optimizer.clip_norm = 0.1;  // clips, so every weight depends on the norm of all gradients
  spec.data.paths = {"text"};      // for the configuration that a checkpoint holds; never opened
  spec.data.tokenizer = "made-up";
  return spec;
}

// Rotary positions whose angles follow from the length of a sequence, and key heads that query heads share.
inline RunSpec llama() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Llama;
  spec.model.kv_heads = 2;
  spec.model.ffn = 24;
  spec.model.qkv_bias = true;
  spec.model.qk_norm = true;
  spec.model.rope_scaling = RopeScaling::Dynamic;
  spec.model.rope_context = 8;
  return spec;
}

// Attention both ways, norms behind the residuals, and a head that picks tokens.
inline RunSpec bert() {
  RunSpec spec = gpt2();
  spec.model.family = ModelFamily::Bert;
  return spec;
}

// Windows and caps, and norms behind the branches too.
inline RunSpec gemma2() {
  RunSpec spec = llama();
  spec.model.family = ModelFamily::Gemma2;
  spec.model.qkv_bias = spec.model.qk_norm = false;
  spec.model.rope_scaling = RopeScaling::None;
  spec.model.head_width = 4;
  spec.model.window = 4;
  spec.model.attention_cap = 50;
  spec.model.logit_cap = 30;
  return spec;
}

struct Layout {
  const char* name;
  RunSpec (*model)();
  MeshSpec mesh;
  void (*model_change)(RunSpec& spec);  // also of the run on one rank
  void (*layout_change)(RunSpec& spec);
};

inline void nothing(RunSpec&) {}
inline void drops(RunSpec& spec) { spec.model.dropout = 0.3; }
inline void documents(RunSpec& spec) { spec.data.attention = AttentionMask::Document; }

inline void expect_training_of_one_rank(const Layout& layout) {
  RunSpec spec = layout.model();
  layout.model_change(spec);
  const LayoutResult want = train_layout(spec);
  spec.mesh = layout.mesh;
  layout.layout_change(spec);
  const LayoutResult got = train_layout(spec);
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t step = 0; step < want.losses.size(); ++step) {
    EXPECT_NEAR(got.losses[step], want.losses[step], 1e-12);
    EXPECT_NEAR(got.grad_norms[step], want.grad_norms[step], 1e-12);
  }
  EXPECT_EQ(got.sample_hashes, want.sample_hashes);
  EXPECT_LT(difference_to_largest(got.first_gradients, want.first_gradients), 1e-12);
  EXPECT_LT(largest_difference(got.params, want.params), 1e-8);
}

// Trains for two steps, and saves to `folder` after the first; or for one that follows on what is in `folder`. Returns
// the masters.
enum class From { Start, Checkpoint };
inline std::map<std::string, at::Tensor> masters_after(const RunSpec& spec, From from, const std::string& folder) {
  std::map<std::string, at::Tensor> masters;
  std::mutex lock;
  on_every_rank(spec, [&](Trainer& trainer) {
    if (from == From::Checkpoint) trainer.load(folder);
    trainer.step();
    if (from == From::Start) trainer.save(folder, ""), trainer.step();
    const std::scoped_lock hold(lock);
    collect(trainer, masters, Held::Masters);
  });
  return masters;
}

}  // namespace braid::train::token_parts
