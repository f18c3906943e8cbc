// Sequences for the masked objective: text between [CLS] and [SEP], padding, and the chosen tokens.
//
//   text      the  cat  sat  [SEP]  a  dog             documents end with [SEP]
//   tokens    [CLS]  the  [MASK]  sat  [SEP]  a  dog  [SEP]
//   rows      2                                        places of the chosen tokens
//   targets   cat
//
// A chosen token becomes [MASK] in 80 % of the cases, a random token in 10 %, and stays in 10 %. Special tokens and
// padding are never chosen. Everything is a pure function of (seed, index), so any mesh reads the same sequences; each
// epoch chooses anew. Source: Devlin et al., "BERT" (2018), section 3.1; Liu et al., "RoBERTa" (2019), section 4.1 and
// FULL-SENTENCES of section 4.2.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "braid/data/sampler.h"

namespace braid::data {

struct MaskedShape {
  int context = 0;  // tokens of a sequence
  int masks = 0;    // tokens to choose of a sequence full of text
  Cut cut = Cut::Windows;
  double share = 1;  // of a text's tokens: a short text has no more masks than that, but at least one
};

struct MaskedSequence {
  std::vector<int64_t> tokens;         // with padding
  std::vector<int64_t> rows, targets;  // as many as masks; a target of -1, at row 0, is none
  std::vector<int64_t> documents;      // by token; padding is a document of its own
};

// Frames and masks a text of at most context - 2 tokens. `documents` has a number for each of its tokens. `key` makes
// the choice. With fewer tokens than masks that may be chosen, all of them are.
MaskedSequence masked_sequence(std::span<const int64_t> text, std::span<const int64_t> documents,
                               const MaskedShape& shape, const MaskTokens& tokens, uint64_t key);

class MaskedSampler {
 public:
  // With Cut::Windows a sequence has context - 2 tokens of the blend's text. With Cut::Documents it has as many of one
  // document or fewer, without the token that ends it. `seed` orders the samples and chooses tokens. Throws
  // ConfigError if a part does not fill one sequence.
  MaskedSampler(const Blend& blend, const MaskedShape& shape, MaskTokens tokens, uint64_t seed);

  MaskedSequence read(int64_t index) const;
  // Returns the sum of the numbers of chosen tokens of `count` samples from `first` on, if no document has special
  // tokens within.
  int64_t num_targets(int64_t first, int64_t count) const;

 private:
  MaskedShape shape_;
  MaskTokens tokens_;
  uint64_t key_;
  Sampler sampler_;
};

}  // namespace braid::data
