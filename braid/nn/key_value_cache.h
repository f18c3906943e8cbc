// The key-value cache of generation: attention layers store keys and values of some sequences here, so that a forward
// computes new tokens only. Keys are stored after their rotation if positions are rotary.
//
// A forward is begin(), then the blocks of the model, then end(). One forward and one thread at a time.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <vector>

namespace braid::nn {

class KeyValueCache {
 public:
  // Makes a cache of sequences 0 .. num_sequences - 1, each of at most `context` tokens. All are empty.
  KeyValueCache(int64_t num_sequences, int64_t context);

  int64_t context() const { return context_; }
  int64_t length(int64_t sequence) const { return lengths_.at(static_cast<size_t>(sequence)); }
  void forget(int64_t sequence) { lengths_.at(static_cast<size_t>(sequence)) = 0; }
  // Overwrites sequence `to` with a copy of sequence `from`.
  void copy(int64_t from, int64_t to);

  // The next `count` tokens of a sequence, after its cached ones.
  struct Stretch {
    int64_t sequence = 0, count = 1;
  };
  // Starts a forward over the tokens of `stretches`, one stretch after another; its microbatch, flattened, has these n
  // tokens. REQUIRES: all sequences are different. check() fails if a sequence would exceed the context.
  void begin(std::vector<Stretch> stretches);
  // Starts a forward over one token of each sequence.
  void begin_step(const std::vector<int64_t>& sequences);
  // Ends the forward; its tokens count as cached from then on.
  void end();

  // The current forward, between begin() and end().
  const std::vector<Stretch>& stretches() const { return stretches_; }
  int64_t num_tokens() const { return places_n_.numel(); }
  const at::Tensor& places_n() const { return places_n_; }        // int64, the position of each token in its sequence
  const at::Tensor& sequences_n() const { return sequences_n_; }  // int64, the sequence of each token
  const at::Tensor& last_s() const { return last_s_; }            // int64, the index of the last token of each stretch

  // A layer's tensors. They are allocated when the layer first asks for them. The keys of one sequence and one of the
  // kv_heads heads are contiguous, and so are the values (kernels/generation_rows.h).
  struct Layer {
    at::Tensor keys_skpdp;  // sequence, head, block of positions, feature, position in the block
    at::Tensor values_sktd;
  };
  struct LayerShape {
    int64_t kv_heads = 1, head_width = 1;
    at::TensorOptions options;
  };
  // The place of an attention in its model: the numbers of its block and of its op.
  struct Place {
    int block = 0, op = 0;
    auto operator<=>(const Place&) const = default;
  };
  // Returns the tensors of the layer at this place.
  const Layer& layer(const Place& place, const LayerShape& shape);

 private:
  int64_t context_;
  std::vector<int64_t> lengths_;
  std::map<Place, Layer> layers_;
  std::vector<Stretch> stretches_;
  at::Tensor places_n_, sequences_n_, last_s_;
};

}  // namespace braid::nn
