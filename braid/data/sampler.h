// Maps sample number i of a run to its tokens: a pure function of (seed, i). Therefore any mesh reads the same samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "braid/data/corpus.h"

namespace braid::data {

// A map from sample number i to one of several parts, in proportion to their weights: a pure function of i, in constant
// memory.
//
// The parts take turns in a fixed round of kRound turns, which repeats for ever. Each part has a whole number of turns
// in a round, at least one: its fraction of the weights, rounded by the largest remainder. The turns are spread evenly:
// no part is ever a whole turn ahead of its fraction.
class Interleave {
 public:
  static constexpr int kRound = 8192;

  // REQUIRES: all weights are finite and more than 0, and there are at most kRound of them.
  explicit Interleave(const std::vector<double>& weights);

  struct Turn {
    int part;
    int64_t number;  // number of earlier samples of the part: 0, 1, 2, .. without a gap
  };
  Turn turn(int64_t index) const;
  // Returns the number of turns that a part has in a round of kRound turns.
  int turns(int part) const { return turns_[static_cast<size_t>(part)]; }

 private:
  struct Place {
    int part, before;  // `before`: number of the part's turns earlier in the round
  };

  std::vector<int> turns_;
  std::vector<Place> round_;
};

// The cut of a part into samples. Documents: pieces of one document of at most `context` tokens, without the token that
// ends the document.
enum class Cut { Windows, Documents };

struct TextPiece {
  int64_t begin, length;
};
// Returns the pieces of all documents, of at most `most` tokens.
std::vector<TextPiece> document_pieces(const TokenSource& tokens, int most);

// Cuts each part of a blend into windows of context + 1 tokens. A part's documents lie one after another, and windows
// overlap by one token. So every token but a part's first is predicted once. A window may hold several documents. Parts
// take turns by their weights (Interleave). Each part has its own epochs, and each epoch a new pseudo-random order of
// the part's windows (a Feistel permutation: no table, constant memory).
//
//   documents  a a a a a a E b b b E c c c c c c c E        E: end-of-text, the last token of each
//   windows    +-------+-------+-------+-------+            context 4; what does not fill a window is left out
class Sampler {
 public:
  // Throws ConfigError if a part does not fill one window. REQUIRES: `blend` has a part. Cut::Documents keeps 16 bytes
  // for each piece.
  Sampler(const Blend& blend, int context, uint64_t seed, Cut cut = Cut::Windows);

  // Returns the number of samples taken from one part before its next epoch begins.
  int64_t windows_per_epoch(size_t part = 0) const { return parts_[part].num_windows; }
  // Returns the number of tokens of a sample: context, or with Cut::Documents at most that.
  int64_t length(int64_t index) const;
  // Reads the tokens first, first + 1, .. of the context + 1 tokens of global sample `index` (0, 1, 2, ... without
  // end).
  void read(int64_t index, std::span<int64_t> tokens, int64_t first = 0) const;
  // Writes the document number, counted from 0 in the sample, of each of the sample's first documents.size() tokens.
  // REQUIRES of both: the tokens are among the sample's, context + 1, or with Cut::Documents length().
  void read_documents(int64_t index, std::span<int64_t> documents) const;

 private:
  struct Part {
    Tokens tokens;
    uint64_t order_key;
    int64_t num_windows;
    std::vector<TextPiece> pieces;  // Cut::Documents
  };
  // The location of a sample: tokens begin .. begin + length - 1 of `part`; of a window, one more may be read.
  struct Place {
    const Part& part;
    int64_t begin, length, readable;
  };
  Place place(int64_t index) const;

  int context_;
  std::vector<Part> parts_;
  Interleave interleave_;
};

// Returns a hash of `tokens` as sample `index`. The sum over a set of samples (modulo 2^64) identifies the tokens of
// each sample. It does not depend on the order or the ranks in which they were read.
uint64_t sample_hash(int64_t index, std::span<const int64_t> tokens);

struct BatchShape {
  int batch = 1;       // sequences per step, over all data ranks
  int microbatch = 1;  // sequences per forward pass of one rank
};
// Returns the first sample of one microbatch. `global_micro` is the index of the microbatch in the step, over all data
// ranks. spec/batch_shares.h assigns contiguous blocks of microbatches to ranks, so reduction trees continue across
// ranks.
int64_t first_sample(const BatchShape& shape, int64_t step, int global_micro);

}  // namespace braid::data
