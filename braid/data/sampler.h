// Which tokens are sample number i of a run: a pure function of (seed, i), so any mesh reads the same samples.
// It knows no mesh: first_sample() is the arithmetic that hands samples to data ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace braid {

// Cuts `tokens` into windows of context + 1 that overlap by one token, and walks them in a new pseudo-random order
// every epoch (a Feistel permutation: no table, constant memory).
class Sampler {
 public:
  // `tokens` must outlive the sampler. Throws ConfigError when they do not fill one window.
  Sampler(std::span<const uint16_t> tokens, int context, uint64_t seed);

  int64_t windows_per_epoch() const { return num_windows_; }
  // context + 1 tokens of global sample `index` (0, 1, 2, ... without end).
  std::span<const uint16_t> sample(int64_t index) const;
  // A hash of samples [first, first + count): equal on every mesh, printed in every step's log line.
  uint64_t hash(int64_t first, int64_t count) const;

 private:
  int64_t window(int64_t epoch, int64_t place) const;

  std::span<const uint16_t> tokens_;
  int context_;
  uint64_t order_key_;
  int64_t num_windows_;
};

// The samples of one microbatch. With batch B, microbatch b, d data ranks and m = B / (b d) microbatches per rank, data
// rank r's microbatch k is global microbatch r m + k of the step: a contiguous block per rank, so that trees over the
// global microbatches continue across ranks.
struct BatchShape {
  int batch = 1;       // sequences per step, over all data ranks
  int microbatch = 1;  // sequences per forward pass of one rank
  int data_size = 1;   // ranks of the data axis
};
int64_t first_sample(const BatchShape& shape, int64_t step, int data_rank, int micro);

}  // namespace braid
