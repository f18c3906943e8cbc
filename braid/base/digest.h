// Digests of byte streams, by xxHash. They detect accidents (torn writes, flipped bits), not attacks. New files are
// written with XXH3. XXH64 is read in older files. Digests that are compared across versions (of tokenizers, texts and
// lines) are XXH64 in every version.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace braid {

// Xxh64 is XXH64 with seed 0, as in `xxhsum -H1`. Xxh3 is 64-bit XXH3 without seed or secret, as in `xxhsum -H3`.
enum class DigestKind : uint8_t { Xxh64, Xxh3 };

// Returns the name used in files: "xxh64", "xxh3".
std::string text(DigestKind kind);
// Returns the kind of that name, or nullopt for any other name.
std::optional<DigestKind> digest_kind(std::string_view name);

// A digest with its kind. Digests of different kinds are never equal.
struct NamedDigest {
  uint64_t value = 0;
  DigestKind kind = DigestKind::Xxh3;

  bool operator==(const NamedDigest&) const = default;
};

// Returns "xxh3 0c5a…", with sixteen hexadecimal digits.
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

// Adds a text with its length, which marks where the text ends: the length in decimal, a newline and the bytes.
void add_sized(Digest& digest, std::string_view text);

// Returns `value` as sixteen lower-case hexadecimal digits.
std::string hex(uint64_t value);

// The identity of a file by its content: equal marks mean equal bytes, in whatever folders the files are.
struct ContentMark {
  std::string name;  // file name without a folder: "source0-train-00000.tokens"
  int64_t documents = 0, bytes = 0;
  NamedDigest digest;  // has the kind of the digests in the file itself

  bool operator==(const ContentMark&) const = default;
};

}  // namespace braid
