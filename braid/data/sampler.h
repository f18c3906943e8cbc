// Which tokens are sample number i of a run: a pure function of (seed, i), so any mesh reads the same samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/data/corpus.h"

namespace braid::data {

// Maps sample number i to one of several parts, in proportion to their weights: a pure function of i, in constant
// memory.

// The parts take turns in a fixed round of kRound turns, repeated for ever. Part p has a whole number of the round's
// turns: its share of the weights, rounded by the largest remainder, at least one. They are spread evenly: no part is
// ever a whole turn ahead of its share.
class Interleave {
 public:
  static constexpr int kRound = 8192;

  // All weights are finite and more than 0; at most kRound of them (check).
  explicit Interleave(const std::vector<double>& weights);

  struct Turn {
    int part;
    int64_t number;  // how many samples of the part came before: 0, 1, 2, .. without a gap
  };
  Turn turn(int64_t index) const;
  // Turns of a part in a round, of kRound in all.
  int turns(int part) const { return turns_[static_cast<size_t>(part)]; }

 private:
  struct Place {
    int part, before;  // the part's turns earlier in the round
  };

  std::vector<int> turns_;
  std::vector<Place> round_;
};

// Cuts each part of a blend, whose documents lie one after another, into windows of context + 1 tokens that overlap by
// one: every token but a part's first is predicted once, whatever documents share a window. Parts take turns by their
// weights (sampler.h); each walks its windows in a new pseudo-random order every epoch of its own (a Feistel
// permutation: no table, constant memory), so no window comes twice before all others of its part came.
//
//   documents  a a a a a a E b b b E c c c c c c c E        E: end-of-text, the last token of each
//   windows    +-------+-------+-------+-------+            context 4; what does not fill a window is left out
class Sampler {
 public:
  // Throws ConfigError when a part does not fill one window. `blend` has a part (check).
  Sampler(const Blend& blend, int context, uint64_t seed);

  // Returns the number of samples taken from one part before it begins again.
  int64_t windows_per_epoch(size_t part = 0) const { return parts_[part].num_windows; }
  // Tokens first, first + 1, .. of the context + 1 that global sample `index` has (0, 1, 2, ... without end).
  void read(int64_t index, std::span<int64_t> tokens, int64_t first = 0) const;
  // For its first documents.size() tokens, at most context + 1, which document of the sample each is of: 0, 1, ..
  void read_documents(int64_t index, std::span<int64_t> documents) const;

 private:
  struct Part {
    Tokens tokens;
    uint64_t order_key;
    int64_t num_windows;
  };
  // A sample's place: tokens begin .. begin + context of `part`.
  struct Place {
    const Part& part;
    int64_t begin;
  };
  Place place(int64_t index) const;

  int context_;
  std::vector<Part> parts_;
  Interleave interleave_;
};

// A hash of `tokens` at place `index`. Added up over any set of places (modulo 2^64) it tells which tokens were at
// which place, whoever read them and in whatever order.
uint64_t sample_hash(int64_t index, std::span<const int64_t> tokens);

// The first sample of one microbatch: `global_micro` is its place among all of the step, those of all data ranks, which
// spec/batch_shares.h shares out in contiguous blocks, so that trees over them continue across ranks.
struct BatchShape {
  int batch = 1;       // sequences per step, over all data ranks
  int microbatch = 1;  // sequences per forward pass of one rank
};
int64_t first_sample(const BatchShape& shape, int64_t step, int global_micro);

}  // namespace braid::data
