// A cache of the tokens of short pieces of text.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace braid::tokenize {

// A cache for one thread at a time. It takes 2 MiB.
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

}  // namespace braid::tokenize
