// What attention layers keep of the tokens of some sequences while text is generated, so that a forward pass need only
// compute what is new: keys, as queries meet them (turned by their places, where positions are rotary), and values.
// It knows no model and makes no text.
//
// One forward at a time: begin(), the blocks of the model, end(). One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace braid {

class KeyValueCache {
 public:
  // Sequences 0 .. num_sequences - 1 of at most `context` tokens, all empty.
  KeyValueCache(int64_t num_sequences, int64_t context);

  int64_t context() const { return context_; }
  int64_t length(int64_t sequence) const { return lengths_.at(static_cast<size_t>(sequence)); }
  void forget(int64_t sequence) { lengths_.at(static_cast<size_t>(sequence)) = 0; }
  // Makes `to` what `from` is.
  void copy(int64_t from, int64_t to);

  // The forward at hand has `num_tokens` tokens of each of `sequences`, all different, behind those that are cached;
  // row i of its microbatch is of sequences[i]. check() fails when they do not fit.
  void begin(std::vector<int64_t> sequences, int64_t num_tokens);
  void end();  // its tokens are cached

  // Of the forward at hand.
  const std::vector<int64_t>& sequences() const { return sequences_; }
  int64_t num_tokens() const { return num_tokens_; }
  bool begins_anew() const;                                 // nothing is cached of any of its sequences
  const at::Tensor& places_n() const { return places_n_; }  // int64, the places of its tokens, row by row

  // A layer's tensors, made when it first asks. Each sequence and head of [kv_heads] has its keys and its values in one
  // piece (kernels/generation_rows.h).
  struct Layer {
    at::Tensor keys_skpdp;  // sequence, head, block of places, feature, place in the block
    at::Tensor values_sktd;
  };
  struct LayerShape {
    int64_t kv_heads = 1, head_width = 1;
    at::TensorOptions options;
  };
  // `layer` tells layers apart, by their addresses.
  const Layer& layer(const void* layer, const LayerShape& shape);

 private:
  int64_t context_;
  std::vector<int64_t> lengths_;
  std::map<const void*, Layer> layers_;
  std::vector<int64_t> sequences_;
  int64_t num_tokens_ = 0;
  at::Tensor places_n_;
};

}  // namespace braid
