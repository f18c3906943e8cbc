// The key-value cache of generation: attention layers store the keys and values of some sequences here, so that a
// forward pass computes new tokens only. Keys are stored rotated where positions are rotary.
//
// One forward at a time: begin(), the blocks of the model, end(). One thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace braid::nn {

class KeyValueCache {
 public:
  // Sequences 0 .. num_sequences - 1 of at most `context` tokens, all empty.
  KeyValueCache(int64_t num_sequences, int64_t context);

  int64_t context() const { return context_; }
  int64_t length(int64_t sequence) const { return lengths_.at(static_cast<size_t>(sequence)); }
  void forget(int64_t sequence) { lengths_.at(static_cast<size_t>(sequence)) = 0; }
  // Makes `to` what `from` is.
  void copy(int64_t from, int64_t to);

  // The next `count` tokens of a sequence, behind those that are cached.
  struct Stretch {
    int64_t sequence = 0, count = 1;
  };
  // Starts a forward over the tokens of `stretches`, one after another: its microbatch, flattened, has these n tokens.
  // Their sequences are all different. check() fails when a sequence has no room for its tokens.
  void begin(std::vector<Stretch> stretches);
  // Starts a forward over one token of each sequence.
  void begin_step(const std::vector<int64_t>& sequences);
  // Ends the forward: its tokens are cached.
  void end();

  // The forward at hand.
  const std::vector<Stretch>& stretches() const { return stretches_; }
  int64_t num_tokens() const { return places_n_.numel(); }
  const at::Tensor& places_n() const { return places_n_; }        // int64, the place of each token in its sequence
  const at::Tensor& sequences_n() const { return sequences_n_; }  // int64, the sequence of each token
  const at::Tensor& last_s() const { return last_s_; }            // int64, of each stretch the number of its last token

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
  std::vector<Stretch> stretches_;
  at::Tensor places_n_, sequences_n_, last_s_;
};

}  // namespace braid::nn
