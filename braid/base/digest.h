// XXH64 of a stream of bytes, seed 0: finds accidents (torn writes, flipped bits), not attacks.
// It knows no files. Source: the xxHash fast digest algorithm specification, version 0.1.1, "XXH64"; `xxhsum -H1`
// agrees.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace braid {

class Digest {
 public:
  void add(std::span<const std::byte> bytes);
  // Of everything added so far.
  uint64_t value() const;

 private:
  void consume(const std::byte* stripe);

  std::array<uint64_t, 4> lanes_{0x60EA27EEADC0B5D6, 0xC2B2AE3D27D4EB4F, 0, 0x61C8864E7A143579};
  std::array<std::byte, 32> rest_{};  // the last total_ % 32 bytes
  uint64_t total_ = 0;
};

// Adds a text so that its end shows: its length in decimal, a newline and its bytes.
void add_sized(Digest& digest, std::string_view text);

// Sixteen lower-case digits.
std::string hex(uint64_t value);

}  // namespace braid
