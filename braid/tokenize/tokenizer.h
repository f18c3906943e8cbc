// Text to tokens and back.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace braid::tokenize {

// Threads may share one: every method may be called by several at once.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  // One more than the highest token.
  virtual int vocab() const = 0;
  virtual int end_of_text() const = 0;
  // Returns true if a token has this id, which lies in [0, vocab()). Files may leave ids out.
  virtual bool has(int /*token*/) const { return true; }
  // `text` is bytes, UTF-8 or not; decode_text() gives the same bytes back (where the tokenizer has a
  // normalizer: of the normal form C; where it marks spaces as U+2581, with spaces for such characters). The names of
  // special tokens in it
  // ("<|endoftext|>") are text like any other, so a document cannot end itself.
  virtual std::vector<int> encode(std::string_view text) const = 0;
  // The same behind what is in `tokens`, without a vector of its own.
  virtual void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const;
  // End-of-text and other special tokens give no characters. Every token must lie in [0, vocab()). Of tokens that stand
  // behind others in a text, so that one may be decoded after another.
  virtual std::string decode(const std::vector<int>& tokens) const = 0;
  // The same of tokens with which a text begins: without the space that encode() put in front of it.
  virtual std::string decode_text(const std::vector<int>& tokens) const { return decode(tokens); }
};

// Bytes 0..255 are tokens 0..255; 256 is end-of-text.
std::unique_ptr<Tokenizer> byte_tokenizer();

// By DataSpec::tokenizer: "bytes", the path of a tokenizer.json, or a folder with it or with vocab.json and merges.txt.
// Throws ConfigError (key "data.tokenizer") naming everything that is missing, malformed or not supported.
std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name);

}  // namespace braid::tokenize
