// WordPiece: text is normalized and cut into words, and each word becomes the longest tokens of the vocabulary, from
// the left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "braid/tokenize/added_tokens.h"
#include "braid/tokenize/bert_text.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

struct WordPieceToken {
  std::string spelling;  // with the prefix, as in "##ing"
  TokenKind kind = TokenKind::Hole;
  bool in_words = false;  // words may contain it: it is in the vocabulary and not special

  bool operator==(const WordPieceToken&) const = default;
};

// The rules that join tokens to text. A token that begins with the prefix continues the token before it, and any other
// token follows after a space.
struct WordPieceDecoding {
  std::string prefix = "##";
  bool cleanup = true;  // removes the space before . ? ! , and in English contractions

  bool operator==(const WordPieceDecoding&) const = default;
};

// The spellings of the tokens of the masked objective.
struct MaskSpellings {
  std::string mask = "[MASK]", begin = "[CLS]", end = "[SEP]", padding = "[PAD]";
};

struct WordPieceModel {
  std::vector<WordPieceToken> tokens;  // by id
  int unknown = 0;                     // the token of a word that cannot be spelled
  int end_of_text = 0;
  std::string prefix = "##";    // of tokens that continue a word
  size_t max_word_chars = 100;  // longer words are unknown
  std::optional<BertRules> normalizer = BertRules{};
  std::optional<WordPieceDecoding> decoding = WordPieceDecoding{};  // without it, tokens are joined with spaces
  MaskSpellings masking = {};
};

// Makes the tokenizer of `model`. Decoding returns words, not the original text. Source: huggingface/tokenizers 0.23,
// models/wordpiece and decoders/wordpiece.
//
// * Special tokens are never part of a word, even if a word is equal to one. (The reference takes such a word for the
//   special token.)
// * Bytes that are not UTF-8 count as U+FFFD each.
//
// REQUIRES: `unknown` is a token. Added tokens with TokenKind::AddedToForm do not normalize to an empty string.
std::unique_ptr<Tokenizer> wordpiece_tokenizer(WordPieceModel model);

}  // namespace braid::tokenize
