// Drawn models of both families, the same in every run.
#pragma once

#include <cstdint>
#include <random>

#include "braid/model/model_spec.h"

namespace braid {

class DrawnModels {
 public:
  // Draws a model whose heads of keys and values, and features of the feed-forward branch, divide over `tensor` ranks.
  ModelSpec draw(int tensor) {
    ModelSpec spec;
    spec.family = one_of({ModelFamily::Gpt2, ModelFamily::Llama});
    const bool llama = spec.family == ModelFamily::Llama;
    const int kv_heads = tensor * one_of({1, 2}), group = llama ? one_of({1, 2, 3}) : 1;
    spec.layers = one_of({1, 2, 5});
    spec.heads = kv_heads * group;
    spec.width = spec.heads * one_of({4, 6, 16});
    spec.ffn = one_of({0, tensor * 12});
    if (spec.ffn == 0 && llama) spec.ffn = tensor * 40;
    spec.context = one_of({16, 48});
    spec.vocab = one_of({19, 96, 1000});
    spec.vocab_multiple = one_of({1, 16, 50});
    spec.output_weights = one_of({OutputWeights::Tied, OutputWeights::Untied});
    spec.init_std = one_of({0.02, 0.3});
    if (!llama) return spec;
    spec.kv_heads = kv_heads;
    spec.head_width = one_of({0, 10});
    spec.qkv_bias = one_of({false, true});
    spec.qk_norm = one_of({false, true});
    spec.window = one_of({0, 9});
    return spec;
  }

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[numbers_() % values.size()];
  }

 private:
  std::mt19937 numbers_{32};
};

}  // namespace braid
