// The byte tokenizer, and the construction of tokenizers by name. Tokenizer files are read elsewhere.
#include "braid/tokenize/tokenizer.h"

#include "braid/base/errors.h"
#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/spec/data_spec.h"
#include "braid/spec/fields.h"
#include "braid/tokenize/tokenizer_file.h"

namespace braid::tokenize {
namespace {

constexpr int kEndOfText = 256;

class ByteTokenizer final : public Tokenizer {
 public:
  int vocab() const override { return kEndOfText + 1; }
  int end_of_text() const override { return kEndOfText; }

  void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const override {
    for (const char c : text) tokens.push_back(static_cast<unsigned char>(c));
  }

  std::string decode(const std::vector<int>& tokens) const override {
    std::string text;
    for (const int token : tokens) {
      check(token >= 0 && token <= kEndOfText, "a token lies inside the tokenizer's vocabulary");
      if (token != kEndOfText) text.push_back(static_cast<char>(token));
    }
    return text;
  }
};

}  // namespace

std::vector<int> Tokenizer::encode(std::string_view text) const {
  std::vector<uint32_t> tokens;
  encode_append(text, tokens);
  return {tokens.begin(), tokens.end()};
}

std::unique_ptr<Tokenizer> byte_tokenizer() { return std::make_unique<ByteTokenizer>(); }

std::unique_ptr<Tokenizer> make_tokenizer(const std::string& name) {
  if (name == kByteTokenizer) return byte_tokenizer();
  if (path_kind(name) != PathKind::Nothing) return read_tokenizer(name);
  const bool is_bytes = nearest(name, {"bytes"}) == "bytes";
  throw ConfigError(
      {{"data.tokenizer", spec::toml_text(name),
        "must be \"bytes\", a tokenizer.json, or a folder with it or with vocab.json and merges.txt; there is "
        "no such file",
        is_bytes ? spec::toml_text(std::string(kByteTokenizer)) : ""}});
}

}  // namespace braid::tokenize
