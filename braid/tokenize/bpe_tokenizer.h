// Byte-pair encoding: text is cut into pieces, each piece starts as bytes or characters, and merges follow by rank.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/tokenize/added_tokens.h"
#include "braid/tokenize/bpe_merges.h"
#include "braid/tokenize/pretokenizer.h"
#include "braid/tokenize/tokenizer.h"

namespace braid::tokenize {

struct BpeToken {
  std::string bytes;  // with FirstTokens::Characters the spelling, with U+2581 for spaces; for a Byte the byte itself
  TokenKind kind = TokenKind::Hole;

  bool operator==(const BpeToken&) const = default;
};

enum class WholePieces {
  Merge,   // a piece that is a token of the vocabulary is still merged like any other
  Lookup,  // such a piece becomes that token ("ignore_merges", Llama 3)
};

enum class Normalizer {
  None,
  FormC,  // texts are converted to the normal form C first, and decoding returns that form
};

// The first tokens of a text, before merges.
enum class FirstTokens {
  Bytes,
  Characters,  // a character that is no token becomes its bytes; spaces are the character U+2581 (SentencePiece)
};

// The rule for a space in front of a text. With such a space, a word at the beginning of a text becomes the same token
// as elsewhere.
enum class SpaceInFront {
  Never,
  Always,       // before every text, even one that begins with a space, and after every added token
  UnlessThere,  // as Always, but not before a text that begins with a space
  AtTheBegin,   // as UnlessThere, but only at the beginning of the text, not after added tokens
};

struct MarkedSpaces {
  SpaceInFront front = SpaceInFront::Always;
  bool cut = false;  // true: pieces begin at spaces; false: all text between added tokens is one piece
  bool operator==(const MarkedSpaces&) const = default;
};

struct BpeModel {
  std::vector<BpeToken> tokens;  // tokens by id
  std::vector<BpeMerge> merges;  // merges by rank
  Normalizer normalizer = Normalizer::None;
  WholePieces whole_pieces = WholePieces::Merge;
  PretokenizerSpec pretokenizer;
  FirstTokens first_tokens = FirstTokens::Bytes;
  MarkedSpaces spaces = {};  // only with FirstTokens::Characters, which excludes a normalizer and a pre-tokenizer
  int end_of_text = 0;
};

// Returns true if this token of a byte-level vocabulary is the first token of a byte of text, before merges. This also
// holds for an added token of one byte, which is cut out of every text.
bool stands_for_byte(const BpeToken& token);

// Makes the tokenizer of `model`. REQUIRES: for each of the 256 bytes there is a token for which stands_for_byte() is
// true, or a Byte token with FirstTokens::Characters. Throws as cut_by() does.
std::unique_ptr<Tokenizer> bpe_tokenizer(BpeModel model);

}  // namespace braid::tokenize
