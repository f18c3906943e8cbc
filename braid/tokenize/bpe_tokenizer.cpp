// Encoding and decoding with byte-level BPE. A thread borrows its workspace (cursor, cache, scratch) from a pool while
// it encodes. The cache therefore survives from text to text, and no thread waits while another merges.
#include "braid/tokenize/bpe_tokenizer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "braid/base/errors.h"
#include "braid/tokenize/bpe_vocabulary.h"
#include "braid/tokenize/marked_spaces_tokenizer.h"
#include "braid/tokenize/normal_form.h"

namespace braid::tokenize {
namespace {

// A cache of the tokens of pieces, for one thread at a time. It takes 2 MiB.
class PieceCache {
 public:
  static constexpr size_t kMaxBytes = 31;  // longer pieces are not cached
  static constexpr size_t kMaxTokens = 7;  // pieces with more tokens are not cached

  PieceCache() : slots_(kNumSlots) {}

  // The lookup key of a piece. key_of() REQUIRES: `piece` is not empty and has at most kMaxBytes.
  struct Key {
    std::array<uint64_t, 4> words{};  // the piece's bytes, zeros, and the length in the last byte
    size_t place = 0;
  };
  static Key key_of(std::string_view piece) {
    Key key;
    std::memcpy(key.words.data(), piece.data(), piece.size());
    key.words[3] |= static_cast<uint64_t>(piece.size()) << 56;
    uint64_t hash = 0;
    for (const uint64_t word : key.words) hash = (hash ^ word) * 0x9E3779B97F4A7C15ULL, hash ^= hash >> 32;
    key.place = hash & (kNumSlots - 1);
    return key;
  }

  // Returns the tokens, or an empty span if the piece is not cached. The span is valid until the next put().
  std::span<const uint32_t> get(const Key& key) const {
    const Slot& slot = slots_[key.place];
    return slot.words == key.words ? std::span(slot.tokens.data(), slot.num_tokens) : std::span<const uint32_t>();
  }

  void put(const Key& key, std::span<const uint32_t> tokens) {
    if (tokens.size() > kMaxTokens) return;
    Slot& slot = slots_[key.place];
    slot.words = key.words;
    slot.num_tokens = static_cast<uint32_t>(tokens.size());
    std::copy(tokens.begin(), tokens.end(), slot.tokens.begin());
  }

 private:
  static constexpr size_t kNumSlots = size_t{1} << 15;
  struct alignas(64) Slot {  // one cache line
    std::array<uint64_t, 4> words{};
    std::array<uint32_t, kMaxTokens> tokens{};
    uint32_t num_tokens = 0;
  };
  static_assert(sizeof(Slot) == 64);

  std::vector<Slot> slots_;
};

struct Workspace {
  std::unique_ptr<PieceCursor> cursor;
  PieceCache cache;
  MergeScratch scratch;
  std::vector<uint32_t> piece;
};

class WorkspacePool {
 public:
  explicit WorkspacePool(PretokenizerSpec spec) : spec_(std::move(spec)) { give_back(make()); }

  std::unique_ptr<Workspace> borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto workspace = std::move(idle_.back());
        idle_.pop_back();
        return workspace;
      }
    }
    return make();
  }

  void give_back(std::unique_ptr<Workspace> workspace) {
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(workspace));
  }

 private:
  std::unique_ptr<Workspace> make() const {
    auto workspace = std::make_unique<Workspace>();
    workspace->cursor = cut_by(spec_);
    return workspace;
  }

  PretokenizerSpec spec_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> idle_;
};

class BpeTokenizer final : public Tokenizer {
 public:
  explicit BpeTokenizer(BpeModel model) : model_(std::move(model)), merges_(model_.merges), pool_(model_.pretokenizer) {
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

  std::vector<int> encode(std::string_view text) const override {
    std::vector<uint32_t> tokens;
    encode_append(text, tokens);
    return {tokens.begin(), tokens.end()};
  }

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
  void encode_form(std::string_view text, Workspace& workspace, std::vector<uint32_t>& tokens) const {
    for (size_t at = 0; at < text.size();) {
      const auto found = added_to_form_->find(text, at);
      encode_part(text.substr(at, found.begin - at), workspace, tokens);
      if (found.end > found.begin) tokens.push_back(found.token);
      at = found.end;
    }
  }

  // Encodes text without added tokens.
  void encode_part(std::string_view text, Workspace& workspace, std::vector<uint32_t>& tokens) const {
    if (text.empty()) return;
    workspace.cursor->reset(text);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = workspace.cursor->next();
      encode_piece(text.substr(begin, end - begin), workspace, tokens);
      begin = end;
    }
  }

  void encode_piece(std::string_view piece, Workspace& workspace, std::vector<uint32_t>& tokens) const {
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
  void merge_piece(std::string_view piece, Workspace& workspace) const {
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
  mutable WorkspacePool pool_;
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
