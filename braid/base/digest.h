// Digests of a stream of bytes, made with xxHash: they find accidents (torn writes, flipped bits), not attacks. New
// files are written with XXH3. XXH64 is read in older ones, and is used in every version for digests that are compared
// across versions: of tokenizers, texts and lines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid {

// XXH64 with seed 0, XXH3 of 64 bits without seed or secret: `xxhsum -H1` and `xxhsum -H3` agree.
enum class DigestKind : uint8_t { Xxh64, Xxh3 };

// As files name them: "xxh64", "xxh3".
std::string text(DigestKind kind);
// Nothing for any other name.
std::optional<DigestKind> digest_kind(std::string_view name);

// A digest that says how it was made. Only those of one kind are ever equal.
struct NamedDigest {
  uint64_t value = 0;
  DigestKind kind = DigestKind::Xxh3;

  bool operator==(const NamedDigest&) const = default;
};

// "xxh3 0c5a…", with sixteen digits.
std::string text(const NamedDigest& digest);

class Digest {
 public:
  explicit Digest(DigestKind kind);
  Digest(Digest&&) noexcept;
  Digest& operator=(Digest&&) noexcept;
  ~Digest();

  void add(std::span<const std::byte> bytes);
  // Returns the digest of everything added so far.
  uint64_t value() const;
  NamedDigest named() const { return {value(), kind_}; }

 private:
  struct State;

  DigestKind kind_;
  std::unique_ptr<State> state_;
};

// Returns the digest of `bytes`.
uint64_t digest_of(DigestKind kind, std::span<const std::byte> bytes);
uint64_t digest_of(DigestKind kind, std::string_view text);

// Adds a text so that its end shows: its length in decimal, a newline and its bytes.
void add_sized(Digest& digest, std::string_view text);

// Sixteen lower-case digits.
std::string hex(uint64_t value);

// Identifies a file by its content: equal marks mean equal bytes, wherever the files lie.
struct ContentMark {
  std::string name;  // without a folder, "source0-train-00000.tokens"
  int64_t documents = 0, bytes = 0;
  NamedDigest digest;  // of the kind that the file itself has

  bool operator==(const ContentMark&) const = default;
};

}  // namespace braid
