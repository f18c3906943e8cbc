// Byte-pair encoding: pieces of text, bytes or characters as first tokens, merges by rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/tokenize/bpe_merges.h"
#include "braid/tokenize/pretokenizer.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

enum class TokenKind : uint8_t {
  Hole,         // no token has this id
  Text,         // of the vocabulary
  Added,        // cut out of the raw text before all else, wherever it stands ("normalized": false)
  AddedToForm,  // its normal form is cut out of the normal form of what is left
  Special,      // never found in text
  Byte,         // of FirstTokens::Characters: a byte of a character that is no token
};

struct BpeToken {
  std::string bytes;  // of FirstTokens::Characters: its spelling, with U+2581 for spaces; a Byte's is the byte
  TokenKind kind = TokenKind::Hole;

  bool operator==(const BpeToken&) const = default;
};

enum class WholePieces {
  Merge,   // a piece that is a token of the vocabulary is still merged like any other
  Lookup,  // it is that token ("ignore_merges", Llama 3)
};

enum class Normalizer {
  None,
  FormC,  // texts are brought into the normal form C first, so decoding gives that form back
};

// The first tokens of a text, before merges.
enum class FirstTokens {
  Bytes,
  Characters,  // and of a character that is no token its bytes; spaces are the character U+2581 (SentencePiece)
};

// A space before a text that has none: with it a word at the begin of a text is the token that it is elsewhere.
enum class SpaceInFront {
  Never,
  Always,       // of a space too, and behind every added token
  UnlessThere,  // before what does not begin with a space
  AtTheBegin,   // the same, of the text alone
};

struct MarkedSpaces {
  SpaceInFront front = SpaceInFront::Always;
  bool cut = false;  // pieces begin at spaces; else all between added tokens is one piece
  bool operator==(const MarkedSpaces&) const = default;
};

struct BpeModel {
  std::vector<BpeToken> tokens;  // by id
  std::vector<BpeMerge> merges;  // by rank
  Normalizer normalizer = Normalizer::None;
  WholePieces whole_pieces = WholePieces::Merge;
  PretokenizerSpec pretokenizer;
  FirstTokens first_tokens = FirstTokens::Bytes;
  MarkedSpaces spaces = {};  // of FirstTokens::Characters, which has no normalizer and no pre-tokenizer beside
  int end_of_text = 0;
};

// Returns true if a byte of a text becomes this token of a byte-level vocabulary before merges. This holds for an added
// token of one byte as well, which is cut out of every text.
bool stands_for_byte(const BpeToken& token);

// Needs a token that stands for each of the 256 bytes, or a Byte token of FirstTokens::Characters (check). Throws what
// cut_by() throws.
std::unique_ptr<Tokenizer> bpe_tokenizer(BpeModel model);

}  // namespace braid::tokenize
