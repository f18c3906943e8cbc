// Digests of the chunks of a file, kept in memory, to find bytes that changed on the disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "braid/base/digest.h"

namespace braid::disk {

class ChunkDigests {
 public:
  struct Chunk {
    int64_t offset = 0, bytes = 0;
  };

  // Replaces the digests of all chunks that `bytes` overlaps by its own.
  void record(int64_t offset, std::span<const std::byte> bytes) {
    const auto end = offset + std::ssize(bytes);
    auto next = chunks_.lower_bound(offset);
    if (next != chunks_.begin() && end_of(*std::prev(next)) > offset) --next;
    while (next != chunks_.end() && next->first < end) next = chunks_.erase(next);
    chunks_[offset] = {std::ssize(bytes), digest_of(DigestKind::Xxh3, bytes)};
  }

  std::vector<Chunk> chunks() const {
    std::vector<Chunk> all;
    for (const auto& [offset, recorded] : chunks_) all.push_back({offset, recorded.bytes});
    return all;
  }

  // Compares each recorded chunk that is inside of `bytes`. Returns the first that differs.
  std::optional<Chunk> first_difference(int64_t offset, std::span<const std::byte> bytes) const {
    const auto end = offset + std::ssize(bytes);
    for (auto next = chunks_.lower_bound(offset); next != chunks_.end() && end_of(*next) <= end; ++next) {
      const auto [begin, digest] = *next;
      const auto part = bytes.subspan(static_cast<size_t>(begin - offset), static_cast<size_t>(digest.bytes));
      if (digest_of(DigestKind::Xxh3, part) != digest.value) return Chunk{begin, digest.bytes};
    }
    return {};
  }

 private:
  struct Recorded {
    int64_t bytes = 0;
    uint64_t value = 0;
  };
  static int64_t end_of(const std::pair<const int64_t, Recorded>& chunk) { return chunk.first + chunk.second.bytes; }

  std::map<int64_t, Recorded> chunks_;  // by offset; they do not overlap
};

}  // namespace braid::disk
