// Learns the merges of a byte-level vocabulary from counted pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/tokenize/bpe_tokenizer.h"
#include "braid/tokenize/piece_counts.h"

namespace braid::tokenize {

struct BpeTraining {
  int vocab = 0;              // tokens to have in the end: end-of-text, 256 bytes, merges; at least 257
  int64_t min_frequency = 2;  // of a pair that becomes a token
  std::string pattern = "gpt2";
  std::string end_of_text = "<|endoftext|>";
};

// Merges the most frequent pair of neighbouring tokens, again and again; of equally frequent ones the pair with the
// smallest ids (left first). Token 0 is end-of-text, 1 to 256 are the bytes in the order of their symbols
// (byte_alphabet.h), then the merges in the order found. Gives fewer tokens than asked for when no pair is frequent
// enough. The same counts give the same model whatever the order of the texts was; it is the one that the trainer of
// the Hugging Face library gives for these texts. Calls `progress` with the number of tokens now and then. Source:
// Sennrich, Haddow & Birch, "Neural Machine Translation of Rare Words with Subword Units" (2016), algorithm 1.
BpeModel train_bpe(const BpeTraining& training, const PieceCounts& counts,
                   const std::function<void(int)>& progress = {});

}  // namespace braid::tokenize
