// Encoding and decoding with WordPiece. Text is cut into pieces before it is normalized. The tokens of short pieces are
// cached, so that most text is neither normalized nor looked up in the trie.
#include "braid/tokenize/wordpiece_tokenizer.h"

#include <array>
#include <span>
#include <string_view>

#include "braid/base/errors.h"
#include "braid/tokenize/piece_cache.h"
#include "braid/tokenize/token_trie.h"
#include "braid/tokenize/workspace_pool.h"

namespace braid::tokenize {
namespace {

constexpr BertRules kNoRules{false, false, false, false};

struct WordWorkspace {
  explicit WordWorkspace(const BertRules& rules) : pieces(rules) {}
  BertPieces pieces;
  PieceCache cache;
  std::vector<uint32_t> tokens;
};

enum class Place { Begin, Continuation };

// Returns the trie of the tokens that may stand at a place in a word, without the prefix.
TokenTrie trie_of(const WordPieceModel& model, Place place) {
  std::vector<TokenTrie::Entry> entries;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const auto& [spelling, kind, in_words] = model.tokens[id];
    if (!in_words || (place == Place::Continuation && !spelling.starts_with(model.prefix))) continue;
    std::string text = place == Place::Begin ? spelling : spelling.substr(model.prefix.size());
    if (!text.empty()) entries.push_back({std::move(text), static_cast<uint32_t>(id)});
  }
  return TokenTrie(std::move(entries));
}

AddedTokens added_of(const WordPieceModel& model, TokenKind kind, const BertRules& rules) {
  std::vector<AddedToken> added;
  for (size_t id = 0; id < model.tokens.size(); ++id) {
    const WordPieceToken& token = model.tokens[id];
    if (token.kind != kind) continue;
    std::string content = kind == TokenKind::AddedToForm ? bert_form(token.spelling, rules) : token.spelling;
    check(!content.empty(), "an added token has characters");
    added.push_back({std::move(content), static_cast<uint32_t>(id)});
  }
  return AddedTokens(std::move(added));
}

bool has_more_chars(std::string_view word, size_t limit) {
  if (word.size() <= limit) return false;
  size_t chars = 0;
  for (const char c : word) chars += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return chars > limit;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Returns true if clean_up() changes nothing, for most tokens.
bool is_surely_clean(std::string_view text) {
  for (size_t at = text.find(' '); at != text.npos; at = text.find(' ', at + 1)) {
    if (at + 1 < text.size() && std::string_view(".?!,'nd").find(text[at + 1]) != std::string_view::npos) return false;
  }
  return true;
}

// Undoes the spaces that stand in front of most punctuation and contractions.
void clean_up(std::string& text) {
  constexpr std::string_view kReplaced[][2] = {{" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
                                               {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
                                               {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kReplaced) replace_all(text, from, to);
}

class WordPieceTokenizer final : public Tokenizer {
 public:
  explicit WordPieceTokenizer(WordPieceModel model)
      : model_(std::move(model)),
        rules_(model_.normalizer.value_or(kNoRules)),
        begins_(trie_of(model_, Place::Begin)),
        continues_(trie_of(model_, Place::Continuation)),
        added_(added_of(model_, TokenKind::Added, rules_)),
        added_to_form_(added_of(model_, TokenKind::AddedToForm, rules_)),
        piece_rules_(added_to_form_.empty() ? rules_ : kNoRules),
        pool_([this] { return std::make_unique<WordWorkspace>(piece_rules_); }) {
    check(model_.unknown >= 0 && model_.unknown < vocab(), "the unknown token lies inside the vocabulary");
    for (WordPieceToken& token : model_.tokens) {  // they are decoded to their normalized text, as in the reference
      if (token.kind == TokenKind::AddedToForm) token.spelling = bert_form(token.spelling, rules_);
    }
    std::vector<uint32_t> tokens;
    for (char byte = 0x20; byte < 0x7F; ++byte) {
      tokens.clear();
      spell_piece(std::string(1, byte), tokens);
      if (tokens.size() == 1) token_of_ascii_[static_cast<unsigned char>(byte)] = tokens[0];
    }
  }

  int vocab() const override { return static_cast<int>(model_.tokens.size()); }
  bool has(int token) const override { return model_.tokens.at(static_cast<size_t>(token)).kind != TokenKind::Hole; }
  int end_of_text() const override { return model_.end_of_text; }

  std::optional<data::MaskTokens> mask_tokens() const override {
    data::MaskTokens found{-1, -1, -1, -1, {}};
    const MaskSpellings& names = model_.masking;
    for (int id = 0; id < vocab(); ++id) {
      const WordPieceToken& token = model_.tokens[static_cast<size_t>(id)];
      if (token.kind == TokenKind::Hole) continue;
      if (token.spelling == names.mask) found.mask = id;
      if (token.spelling == names.begin) found.begin = id;
      if (token.spelling == names.end) found.end = id;
      if (token.spelling == names.padding) found.padding = id;
    }
    for (int id = 0; id < vocab(); ++id) {
      const TokenKind kind = model_.tokens[static_cast<size_t>(id)].kind;
      if (kind == TokenKind::Hole || kind == TokenKind::Special || found.is_special(id)) continue;
      found.ordinary.push_back(id);
    }
    return found.is_special(-1) || found.ordinary.empty() ? std::nullopt : std::optional(found);
  }

  void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const override {
    auto workspace = pool_.borrow();
    for (size_t at = 0; at < text.size();) {
      const auto found = added_.find(text, at);
      const auto part = text.substr(at, found.begin - at);
      if (added_to_form_.empty()) {
        encode_part(part, *workspace, tokens);
      } else {
        encode_form(bert_form(part, rules_), *workspace, tokens);
      }
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
    pool_.give_back(std::move(workspace));
  }

  std::string decode(const std::vector<int>& tokens) const override { return joined_text(tokens, Place::Continuation); }
  std::string decode_text(const std::vector<int>& tokens) const override { return joined_text(tokens, Place::Begin); }

 private:
  // Encodes normalized text, in which tokens of TokenKind::AddedToForm may stand.
  void encode_form(std::string_view text, WordWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    for (size_t at = 0; at < text.size();) {
      const auto found = added_to_form_.find(text, at);
      encode_part(text.substr(at, found.begin - at), workspace, tokens);
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
  }

  // Encodes text without added tokens. It is normalized if piece_rules_ changes nothing.
  void encode_part(std::string_view text, WordWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    workspace.pieces.reset(text);
    while (true) {
      const size_t begin = workspace.pieces.skip_blanks();
      if (begin == text.size()) return;
      encode_piece(text.substr(begin, workspace.pieces.next() - begin), workspace, tokens);
    }
  }

  void encode_piece(std::string_view piece, WordWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    if (piece.size() == 1) {
      if (const auto token = token_of_ascii_[static_cast<unsigned char>(piece[0])]) return tokens.push_back(*token);
    }
    if (piece.size() > PieceCache::kMaxBytes) return spell_piece(piece, tokens);
    const PieceCache::Key key = PieceCache::key_of(piece);
    std::span<const uint32_t> found = workspace.cache.get(key);
    if (found.empty()) {
      workspace.tokens.clear();
      spell_piece(piece, workspace.tokens);
      workspace.cache.put(key, workspace.tokens);
      found = workspace.tokens;
    }
    for (const uint32_t token : found) tokens.push_back(token);
  }

  // Appends the tokens of a piece's words.
  void spell_piece(std::string_view piece, std::vector<uint32_t>& tokens) const {
    const std::string form = bert_form(piece, piece_rules_);
    BertWords words(form);
    for (auto word = words.next(); !word.empty(); word = words.next()) spell_word(word, tokens);
  }

  void spell_word(std::string_view word, std::vector<uint32_t>& tokens) const {
    const size_t before = tokens.size();
    bool is_spelled = !has_more_chars(word, model_.max_word_chars);
    for (size_t at = 0; is_spelled && at < word.size();) {
      const auto match = (at == 0 ? begins_ : continues_).longest(word.substr(at));
      is_spelled = match.bytes > 0;
      if (is_spelled) tokens.push_back(match.token);
      at += match.bytes;
    }
    if (is_spelled) return;
    tokens.resize(before);
    tokens.push_back(static_cast<uint32_t>(model_.unknown));
  }

  // Joins tokens that stand at the begin of a text or continue one.
  std::string joined_text(const std::vector<int>& tokens, Place place) const {
    std::string text;
    for (const int id : tokens) {
      check(id >= 0 && id < vocab(), "a token lies inside the tokenizer's vocabulary");
      const WordPieceToken& token = model_.tokens[static_cast<size_t>(id)];
      if (token.kind == TokenKind::Hole || token.kind == TokenKind::Special || id == model_.end_of_text) continue;
      append_joined(token.spelling, place, text);
      place = Place::Continuation;
    }
    return text;
  }

  void append_joined(const std::string& spelling, Place place, std::string& text) const {
    const size_t before = text.size();
    const bool continues = model_.decoding && spelling.starts_with(model_.decoding->prefix);
    if (place == Place::Continuation && !continues) text.push_back(' ');
    text.append(spelling, place == Place::Continuation && continues ? model_.decoding->prefix.size() : 0);
    if (!model_.decoding || !model_.decoding->cleanup || is_surely_clean(std::string_view(text).substr(before))) return;
    std::string token = text.substr(before);
    clean_up(token);
    text.replace(before, text.npos, token);
  }

  WordPieceModel model_;
  BertRules rules_;
  TokenTrie begins_, continues_;
  AddedTokens added_, added_to_form_;
  BertRules piece_rules_;                                    // the normalizer of a piece
  std::array<std::optional<uint32_t>, 256> token_of_ascii_;  // of pieces of one character
  mutable WorkspacePool<WordWorkspace> pool_;
};

}  // namespace

std::unique_ptr<Tokenizer> wordpiece_tokenizer(WordPieceModel model) {
  return std::make_unique<WordPieceTokenizer>(std::move(model));
}

}  // namespace braid::tokenize
