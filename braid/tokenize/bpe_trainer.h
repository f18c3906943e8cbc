// Learns the merges of a byte-level vocabulary from counted pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/piece_counts.h"

namespace braid::tokenize {

struct BpeTraining {
  int vocab = 0;              // number of tokens to reach: end-of-text, 256 bytes and merges; at least 257
  int64_t min_frequency = 2;  // lowest count of a pair that becomes a token
  std::string pattern = "gpt2";
  std::string end_of_text = "<|endoftext|>";
};

// Repeatedly merges the most frequent pair of neighbouring tokens. Among equally frequent pairs, the pair with the
// smallest ids (left first) is merged. Token 0 is end-of-text; 1 to 256 are the bytes in the order of their symbols
// (byte_alphabet.h); merges follow in the order found. The result has fewer tokens than asked for if no pair is
// frequent enough. The same counts give the same model, whatever the order of the texts. It equals the model of the
// Hugging Face library's trainer for these texts. Calls `progress` from time to time with the number of tokens. Source:
// Sennrich, Haddow & Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016), algorithm 1.
BpeModel train_bpe(const BpeTraining& training, const PieceCounts& counts,
                   const std::function<void(int)>& progress = {});

}  // namespace braid::tokenize
