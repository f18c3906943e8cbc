// Byte-level byte-pair encoding: pieces of text, bytes as first tokens, merges by rank.
// It knows no files: tokenizer_file.h makes a BpeModel of them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "braid/tokenize/bpe_merges.h"
#include "braid/tokenize/pretokenizer.h"
#include "braid/tokenize/tokenizer.h"

namespace braid {

enum class TokenKind : uint8_t {
  Hole,     // no token has this id
  Text,     // of the vocabulary
  Added,    // cut out of the text before all else, wherever it stands
  Special,  // never found in text
};

struct BpeToken {
  std::string bytes;
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

struct BpeModel {
  std::vector<BpeToken> tokens;  // by id
  std::vector<BpeMerge> merges;  // by rank
  Normalizer normalizer = Normalizer::None;
  WholePieces whole_pieces = WholePieces::Merge;
  PretokenizerSpec pretokenizer;
  int end_of_text = 0;
};

// Needs a Text token for each of the 256 bytes (check). Throws what cut_by() throws.
std::unique_ptr<Tokenizer> bpe_tokenizer(BpeModel model);

}  // namespace braid
