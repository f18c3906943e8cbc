// Learns a WordPiece vocabulary from counted pieces.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "braid/tokenize/piece_counts.h"
#include "braid/tokenize/wordpiece_tokenizer.h"

namespace braid::tokenize {

struct WordPieceTraining {
  size_t vocab = 0;              // number of tokens to reach
  int64_t min_frequency = 2;     // lowest count of a pair that becomes a token
  size_t max_characters = 1000;  // the most frequent characters have tokens; words lose all others
  std::vector<std::string> special_tokens = bert_special_tokens();
  BertRules normalizer;

  // Returns [PAD] [UNK] [CLS] [SEP] [MASK]. The second is the unknown token, the fourth is end-of-text.
  static std::vector<std::string> bert_special_tokens();
};

// Learns as MergeLearner does, from words whose characters behind the first have the prefix "##". The special tokens
// come first. The characters of the words follow by code point, then those that continue a word, then the results of
// merges. Of equally frequent characters, those with smaller code points are kept. `counts` are the counts of
// BertPieces with the same normalizer. The same counts give the same model. The tokens are those of the Hugging Face
// library's WordPieceTrainer, which gives the tokens that continue a word ids in an order that changes from run to run;
// where that order decides between equally frequent pairs, its tokens change too.
//
// Throws ConfigError (key "vocab") if special tokens and characters are more than `vocab`. REQUIRES: special tokens are
// distinct and include [UNK] and [SEP].
WordPieceModel train_wordpiece(const WordPieceTraining& training, const PieceCounts& counts,
                               const std::function<void(int)>& progress = {});

}  // namespace braid::tokenize
