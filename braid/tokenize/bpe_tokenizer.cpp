// Encoding and decoding with byte-level BPE. A thread borrows its workspace (cursor, cache, scratch) from a pool while
// it encodes. The cache therefore survives from text to text, and no thread waits while another merges.
#include "braid/tokenize/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/added_tokens.h"
#include "braid/tokenize/marked_spaces_tokenizer.h"
#include "braid/tokenize/normal_form.h"
#include "braid/tokenize/piece_cache.h"
#include "braid/tokenize/workspace_pool.h"

namespace braid::tokenize {
namespace {

struct BpeWorkspace {
  std::unique_ptr<PieceCursor> cursor;
  PieceCache cache;
  MergeScratch scratch;
  std::vector<uint32_t> piece;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeModel model)
      : model_(std::move(model)), merges_(model_.merges), pool_([this] {
          auto workspace = std::make_unique<BpeWorkspace>();
          workspace->cursor = cut_by(model_.pretokenizer);
          return workspace;
        }) {
    std::array<bool, 256> known{};
    std::vector<AddedToken> added, to_form;
    for (size_t id = 0; id < model_.tokens.size(); ++id) {
      const BpeToken& token = model_.tokens[id];
      if (token.kind == TokenKind::Added) added.push_back({token.bytes, static_cast<uint32_t>(id)});
      if (token.kind == TokenKind::AddedToForm) to_form.push_back({in_form(token.bytes), static_cast<uint32_t>(id)});
      if (stands_for_byte(token)) {
        const auto byte = static_cast<unsigned char>(token.bytes[0]);
        known[byte] = true;
        token_of_byte_[byte] = static_cast<uint32_t>(id);
      }
      if (token.kind == TokenKind::Text && model_.whole_pieces == WholePieces::Lookup)
        whole_pieces_.emplace(token.bytes, static_cast<uint32_t>(id));
    }
    for (const bool byte_is_known : known) check(byte_is_known, "a byte-level vocabulary has a token for every byte");
    added_.emplace(std::move(added));
    added_to_form_.emplace(std::move(to_form));
  }

  int vocab() const override { return static_cast<int>(model_.tokens.size()); }
  bool has(int token) const override { return model_.tokens.at(static_cast<size_t>(token)).kind != TokenKind::Hole; }
  int end_of_text() const override { return model_.end_of_text; }

  void encode_append(std::string_view text, std::vector<uint32_t>& tokens) const override {
    auto workspace = pool_.borrow();
    size_t at = 0;
    while (at < text.size()) {
      const auto found = added_->find(text, at);
      const auto part = text.substr(at, found.begin - at);
      if (model_.normalizer == Normalizer::None || surely_normal_form_c(part)) {
        encode_form(part, *workspace, tokens);
      } else {
        encode_form(normal_form_c(part), *workspace, tokens);
      }
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
    pool_.give_back(std::move(workspace));
  }

  std::string decode(const std::vector<int>& tokens) const override {
    std::string text;
    for (const int token : tokens) {
      check(token >= 0 && token < vocab(), "a token lies inside the tokenizer's vocabulary");
      const BpeToken& known = model_.tokens[token];
      if (known.kind != TokenKind::Special && token != model_.end_of_text) text += known.bytes;
    }
    return text;
  }

 private:
  std::string in_form(const std::string& text) const {
    return model_.normalizer == Normalizer::None ? text : normal_form_c(text);
  }

  // Encodes text that is in the normal form.
  void encode_form(std::string_view text, BpeWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    for (size_t at = 0; at < text.size();) {
      const auto found = added_to_form_->find(text, at);
      encode_part(text.substr(at, found.begin - at), workspace, tokens);
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
  }

  // Encodes text without added tokens.
  void encode_part(std::string_view text, BpeWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    if (text.empty()) return;
    workspace.cursor->reset(text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = workspace.cursor->next();
      encode_piece(text.substr(begin, end - begin), workspace, tokens);
      begin = end;
    }
  }

  void encode_piece(std::string_view piece, BpeWorkspace& workspace, std::vector<uint32_t>& tokens) const {
    if (piece.size() > PieceCache::kMaxBytes) {
      merge_piece(piece, workspace);
      tokens.insert(tokens.end(), workspace.piece.begin(), workspace.piece.end());
      return;
    }
    const PieceCache::Key key = PieceCache::key_of(piece);
    std::span<const uint32_t> found = workspace.cache.get(key);
    if (found.empty()) {
      merge_piece(piece, workspace);
      workspace.cache.put(key, workspace.piece);
      found = workspace.piece;
    }
    for (const uint32_t token : found) tokens.push_back(token);
  }

  // Writes the piece's tokens to workspace.piece.
  void merge_piece(std::string_view piece, BpeWorkspace& workspace) const {
    workspace.piece.clear();
    if (model_.whole_pieces == WholePieces::Lookup) {
      if (const auto whole = whole_pieces_.find(piece); whole != whole_pieces_.end()) {
        workspace.piece.push_back(whole->second);
        return;
      }
    }
    for (const char byte : piece) workspace.piece.push_back(token_of_byte_[static_cast<unsigned char>(byte)]);
    merges_.merge(workspace.piece, workspace.scratch);
  }

  BpeModel model_;
  MergeTable merges_;
  std::array<uint32_t, 256> token_of_byte_{};
  std::unordered_map<std::string_view, uint32_t> whole_pieces_;  // views into model_
  std::optional<AddedTokens> added_, added_to_form_;
  mutable WorkspacePool<BpeWorkspace> pool_;
};

}  // namespace

bool stands_for_byte(const BpeToken& token) {
  const bool found_in_text =
      token.kind == TokenKind::Text || token.kind == TokenKind::Added || token.kind == TokenKind::AddedToForm;
  return found_in_text && token.bytes.size() == 1;
}

std::unique_ptr<Tokenizer> bpe_tokenizer(BpeModel model) {
  if (model.first_tokens == FirstTokens::Characters) return marked_spaces_tokenizer(std::move(model));
  return std::make_unique<BpeTokenizer>(std::move(model));
}

}  // namespace braid::tokenize
