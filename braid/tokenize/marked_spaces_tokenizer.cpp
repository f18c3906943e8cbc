// A text is marked, cut where the model asks for it, and each piece begins as its characters.
#include "braid/tokenize/marked_spaces_tokenizer.h"

#include <algorithm>
#include <array>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/utf8.h"
#include "braid/tokenize/added_tokens.h"

namespace braid::tokenize {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // U+2581

std::string with_marks(std::string_view text) {
  std::string marked;
  for (const char c : text) c == ' ' ? void(marked += kMark) : marked.push_back(c);
  return marked;
}

std::string with_spaces(const std::string& marked) {
  std::string text;
  for (size_t at = 0; at < marked.size();) {
    const bool mark = marked.compare(at, kMark.size(), kMark) == 0;
    text.push_back(mark ? ' ' : marked[at]);
    at += mark ? kMark.size() : 1;
  }
  return text;
}

class MarkedSpacesTokenizer final : public Tokenizer {
 public:
  explicit MarkedSpacesTokenizer(BpeModel model) : model_(std::move(model)), merges_(model_.merges) {
    std::vector<AddedToken> added;
    std::array<bool, 256> known{};
    for (size_t id = 0; id < model_.tokens.size(); ++id) {
      const BpeToken& token = model_.tokens[id];
      const auto number = static_cast<uint32_t>(id);
      if (token.kind == TokenKind::Added) added.push_back({token.bytes, number});
      if (token.kind == TokenKind::Text) text_tokens_.emplace(token.bytes, number);
      if (token.kind != TokenKind::Byte) continue;
      const auto byte = static_cast<unsigned char>(token.bytes[0]);
      known[byte] = true;
      token_of_byte_[byte] = number;
    }
    check(std::count(known.begin(), known.end(), true) == 256, "a vocabulary that falls back to bytes has all of them");
    added_ = std::make_unique<AddedTokens>(std::move(added));
  }

  int vocab() const override { return static_cast<int>(model_.tokens.size()); }
  bool has(int token) const override { return model_.tokens.at(static_cast<size_t>(token)).kind != TokenKind::Hole; }
  int end_of_text() const override { return model_.end_of_text; }

  std::vector<int> encode(std::string_view text) const override {
    std::vector<uint32_t> tokens;
    encode_append(text, tokens);
    return {tokens.begin(), tokens.end()};
  }

  void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const override {
    for (size_t at = 0; at < text.size();) {
      const auto found = added_->find(text, at);
      if (found.begin > at) encode_part(text.substr(at, found.begin - at), at == 0, tokens);
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
  }

  std::string decode(const std::vector<int>& tokens) const override {
    std::string text;
    for (const int token : tokens) {
      check(token >= 0 && token < vocab(), "a token lies inside the tokenizer's vocabulary");
      const auto& [bytes, kind] = model_.tokens[static_cast<size_t>(token)];
      if (kind == TokenKind::Special || token == model_.end_of_text) continue;
      text += kind == TokenKind::Byte ? bytes : with_spaces(bytes);
    }
    return text;
  }

  std::string decode_text(const std::vector<int>& tokens) const override {
    const std::string text = decode(tokens);
    return model_.spaces.front != SpaceInFront::Never && text.starts_with(' ') ? text.substr(1) : text;
  }

 private:
  bool wants_space(const std::string& marked, bool at_begin) const {
    switch (model_.spaces.front) {
      case SpaceInFront::Never:
        return false;
      case SpaceInFront::Always:
        return true;
      case SpaceInFront::UnlessThere:
        return !marked.starts_with(kMark);
      case SpaceInFront::AtTheBegin:
        break;
    }
    return at_begin && !marked.starts_with(kMark);
  }

  // Text without added tokens, not empty.
  void encode_part(std::string_view text, bool at_begin, std::vector<uint32_t>& tokens) const {
    std::string marked = with_marks(text);
    if (wants_space(marked, at_begin)) marked.insert(0, kMark);
    MergeScratch scratch;
    std::vector<uint32_t> piece;
    for (size_t begin = 0; begin < marked.size();) {
      const size_t next = model_.spaces.cut ? marked.find(kMark, begin + 1) : marked.npos;
      const size_t end = std::min(next, marked.size());
      encode_piece(std::string_view(marked).substr(begin, end - begin), piece, scratch);
      tokens.insert(tokens.end(), piece.begin(), piece.end());
      begin = end;
    }
  }

  void encode_piece(std::string_view marked, std::vector<uint32_t>& piece, MergeScratch& scratch) const {
    piece.clear();
    if (model_.whole_pieces == WholePieces::Lookup) {
      if (const auto whole = text_tokens_.find(marked); whole != text_tokens_.end())
        return piece.push_back(whole->second);
    }
    for (size_t at = 0; at < marked.size();) {
      const auto character = marked.substr(at, utf8_at(marked, at).bytes);
      const auto known = text_tokens_.find(character);
      if (known != text_tokens_.end()) {
        piece.push_back(known->second);
      } else {
        for (const char byte : character) piece.push_back(token_of_byte_[static_cast<unsigned char>(byte)]);
      }
      at += character.size();
    }
    merges_.merge(piece, scratch);
  }

  BpeModel model_;
  MergeTable merges_;
  std::array<uint32_t, 256> token_of_byte_{};
  std::unordered_map<std::string_view, uint32_t> text_tokens_;  // views into model_
  std::unique_ptr<AddedTokens> added_;
};

}  // namespace

std::unique_ptr<Tokenizer> marked_spaces_tokenizer(BpeModel model) {
  return std::make_unique<MarkedSpacesTokenizer>(std::move(model));
}

}  // namespace braid::tokenize
