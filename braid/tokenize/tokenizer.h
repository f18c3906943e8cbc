// Converts text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "braid/data/mask_tokens.h"

namespace braid::tokenize {

// A tokenizer. Thread-safe: several threads may call every method at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // Returns one more than the highest token.
  virtual int vocab() const = 0;
  virtual int end_of_text() const = 0;
  // Returns true if a token has this id. Files may leave ids out. REQUIRES: 0 <= id < vocab().
  virtual bool has(int /*token*/) const { return true; }
  // Returns the tokens of the masked objective; nothing if the vocabulary lacks one of them.
  virtual std::optional<data::MaskTokens> mask_tokens() const { return {}; }
  // Encodes `text`, bytes that may not be UTF-8. decode_text() returns the same bytes, with three exceptions: a BPE
  // tokenizer with a normalizer returns the normal form C, one that marks spaces as U+2581 returns spaces for such
  // characters, and WordPiece returns normalized words. The names of special tokens in `text` ("<|endoftext|>") are
  // plain text, so a document cannot end itself.
  std::vector<int> encode(std::string_view text) const;
  // Like encode(), but appends to `tokens` instead of returning a new vector.
  virtual void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const = 0;
  // Decodes tokens from the middle of a text: one sequence may be decoded after another. End-of-text and other special
  // tokens give no characters. REQUIRES: every token lies in [0, vocab()).
  virtual std::string decode(const std::vector<int>& tokens) const = 0;
  // Like decode(), for tokens at the beginning of a text: omits the space that encode() put in front of the text.
  virtual std::string decode_text(const std::vector<int>& tokens) const { return decode(tokens); }
};

// The rule of a masked family's tokenizer.
inline constexpr const char* kNeedsMaskTokens =
    "must have the tokens [MASK], [CLS], [SEP] and [PAD], as a WordPiece tokenizer.json does (braid data "
    "train-wordpiece)";

// Makes the tokenizer whose tokens 0..255 are the bytes 0..255; 256 is end-of-text.
std::unique_ptr<Tokenizer> byte_tokenizer();

// Makes the tokenizer that DataSpec::tokenizer names: "bytes", the path of a tokenizer.json, or a folder with it or
// with vocab.json and merges.txt. Throws ConfigError (key "data.tokenizer") naming everything that is missing,
// malformed or unsupported.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace braid::tokenize
