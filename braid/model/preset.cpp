// The table of presets.
#include "braid/model/preset.h"

namespace braid::model {
namespace {

// The sizes that every family has.
struct Sizes {
  int layers, heads, width, context, vocab;
};

ModelSpec gpt2(const Sizes& sizes) {
  ModelSpec model;
  model.layers = sizes.layers;
  model.heads = sizes.heads;
  model.width = sizes.width;
  model.context = sizes.context;
  model.vocab = sizes.vocab;
  return model;
}

struct LlamaSizes {
  int kv_heads, ffn;
  OutputWeights output_weights;
  double rope_base = 10000;
};

ModelSpec llama(const Sizes& sizes, const LlamaSizes& more) {
  ModelSpec model = gpt2(sizes);
  model.family = ModelFamily::Llama;
  model.kv_heads = more.kv_heads;
  model.ffn = more.ffn;
  model.output_weights = more.output_weights;
  model.rope_base = more.rope_base;
  return model;
}

// Adds the rotary scaling of Llama 3.1 and later. Its other parameters are ModelSpec's defaults.
ModelSpec scaled(ModelSpec model, double factor) {
  model.rope_scaling = RopeScaling::Llama3;
  model.rope_factor = factor;
  return model;
}

const char* const kGpt2 = "Radford et al. 2019, table 2; config.json of openai-community";
const char* const kLlama3 =
    "config.json of meta-llama, with the 8192 tokens of the first training (Grattafiori et al. 2024, section 3.4.1)";

std::vector<Preset> table() {
  constexpr int kGpt2Vocab = 50257, kLlama3Vocab = 128256;
  return {
      {"gpt2-tiny", "ours, for trials", gpt2({4, 4, 128, 256, 0})},
      {"gpt2-124m", kGpt2, gpt2({12, 12, 768, 1024, kGpt2Vocab})},
      {"gpt2-350m", kGpt2, gpt2({24, 16, 1024, 1024, kGpt2Vocab})},
      {"gpt2-774m", kGpt2, gpt2({36, 20, 1280, 1024, kGpt2Vocab})},
      {"gpt2-1.5b", kGpt2, gpt2({48, 25, 1600, 1024, kGpt2Vocab})},
      {"llama-tiny", "ours, for trials", llama({4, 4, 128, 256, 0}, {2, 384, OutputWeights::Tied})},
      {"llama-small", "ours, for trials", llama({6, 6, 384, 256, 0}, {2, 1024, OutputWeights::Tied})},
      {"tinyllama-1.1b", "config.json of TinyLlama/TinyLlama_v1.1; Zhang et al. 2024, table 2",
       llama({22, 32, 2048, 2048, 32000}, {4, 5632, OutputWeights::Untied})},
      {"llama-1b", kLlama3,
       scaled(llama({16, 32, 2048, 8192, kLlama3Vocab}, {8, 8192, OutputWeights::Tied, 500000}), 32)},
      {"llama-3b", kLlama3,
       scaled(llama({28, 24, 3072, 8192, kLlama3Vocab}, {8, 8192, OutputWeights::Tied, 500000}), 32)},
      {"llama-8b", kLlama3,
       scaled(llama({32, 32, 4096, 8192, kLlama3Vocab}, {8, 14336, OutputWeights::Untied, 500000}), 8)},
  };
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> kPresets = table();
  return kPresets;
}

}  // namespace braid::model
