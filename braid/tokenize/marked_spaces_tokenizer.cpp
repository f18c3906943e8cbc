// The tokenizer that marks spaces. It marks the text, cuts it if the model asks for cuts, and merges each piece from
// its characters.
#include "braid/tokenize/marked_spaces_tokenizer.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/base/utf8.h"
#include "braid/tokenize/bpe_vocabulary.h"
#include "braid/tokenize/json_parts.h"

namespace braid::tokenize {
namespace {

using Json = nlohmann::json;

constexpr const char* kMarkOfSpace = "\xE2\x96\x81";  // U+2581

class MarkedReader {
 public:
  explicit MarkedReader(Faults& faults) : faults_(faults), vocabulary_(faults, Spelling::Plain) {}

  BpeModel read(const Json& json) {
    read_normalizer(member(json, "normalizer"));
    read_pretokenizer(member(json, "pre_tokenizer"));
    if (marked_by_ != 1) {
      faults_.add("normalizer", "spaces must become U+2581 once, by Replace or by the pre-tokenizer Metaspace");
    }
    read_model(member(json, "model"));
    read_added_tokens(
        member(json, "added_tokens"), {"single_word", "lstrip", "rstrip", "normalized"}, faults_,
        [this](const std::string& content, int64_t id, TokenKind kind) { vocabulary_.add_added(content, id, kind); });
    BpeModel model = vocabulary_.finish(whole_pieces_);
    model.first_tokens = FirstTokens::Characters;
    model.spaces = spaces_;
    return model;
  }

 private:
  void read_normalizer(const Json& normalizer) {
    bool prepends = false;
    for (const Json& step : steps_of(normalizer, "normalizers")) {
      const bool first = marked_by_ == 0;
      if (first && type_of(step) == "Prepend" && member(step, "prepend") == kMarkOfSpace) {
        prepends = true;
      } else if (first && type_of(step) == "Replace" && member(member(step, "pattern"), "String") == " " &&
                 member(step, "content") == kMarkOfSpace) {
        ++marked_by_;
        spaces_.front = prepends ? SpaceInFront::Always : SpaceInFront::Never;
      } else {
        faults_.add("normalizer", cat("must be Prepend and Replace of spaces by U+2581, is ", shown(step)));
      }
    }
  }

  void read_pretokenizer(const Json& part) {
    for (const Json& step : steps_of(part, "pretokenizers")) {
      if (type_of(step) != "Metaspace" || member(step, "replacement") != kMarkOfSpace) {
        faults_.add("pre_tokenizer", cat("must be null or Metaspace with U+2581, is ", shown(step)));
        continue;
      }
      ++marked_by_;
      const Json &split = member(step, "split"), &scheme = member(step, "prepend_scheme");
      spaces_.cut = split.is_null() || is_true(split);
      const bool former = member(step, "add_prefix_space") == false;  // older files have only add_prefix_space
      if (scheme == "never" || (scheme.is_null() && former)) {
        spaces_.front = SpaceInFront::Never;
      } else if (scheme == "first") {
        spaces_.front = SpaceInFront::AtTheBegin;
      } else if (scheme == "always" || scheme.is_null()) {
        spaces_.front = SpaceInFront::UnlessThere;
      } else {
        faults_.add("pre_tokenizer", cat("prepend_scheme must be always, first or never, is ", shown(scheme)));
      }
    }
  }

  void read_model(const Json& model) {
    const std::string type = type_of(model);
    if (type != "BPE") return faults_.add("model.type", cat("must be BPE, is ", type.empty() ? "missing" : type));
    for (const char* key : {"dropout", "continuing_subword_prefix", "end_of_word_suffix"}) {
      const Json& value = member(model, key);
      const bool is_empty = value.is_null() || value == "" || value == 0.0;
      if (!is_empty) faults_.add(cat("model.", key), cat("is not supported, is ", shown(value)));
    }
    if (is_true(member(model, "ignore_merges"))) whole_pieces_ = WholePieces::Lookup;
    vocabulary_.add_tokens(member(model, "vocab"), "model.vocab");
    add_merges_of(member(model, "merges"), vocabulary_, faults_);
  }

  Faults& faults_;
  BpeVocabulary vocabulary_;
  MarkedSpaces spaces_;
  WholePieces whole_pieces_ = WholePieces::Merge;
  int marked_by_ = 0;  // number of parts of the file that mark spaces
};

}  // namespace

BpeModel marked_spaces_of_json(const Json& json, Faults& faults) { return MarkedReader(faults).read(json); }

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

  // Encodes text without added tokens. REQUIRES: `text` is not empty.
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
