// Digests by xxHash, which is compiled into this file with the widest instructions that braid is compiled for.
#include "braid/base/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <cstdio>

#include "braid/base/text.h"

namespace braid {

struct Digest::State {
  XXH64_state_t xxh64;
  XXH3_state_t xxh3;
};

std::string text(DigestKind kind) { return kind == DigestKind::Xxh64 ? "xxh64" : "xxh3"; }

std::optional<DigestKind> digest_kind(std::string_view name) {
  for (const auto kind : {DigestKind::Xxh64, DigestKind::Xxh3}) {
    if (text(kind) == name) return kind;
  }
  return {};
}

std::string text(const NamedDigest& digest) { return cat(text(digest.kind), " ", hex(digest.value)); }

Digest::Digest(DigestKind kind) : kind_(kind), state_(std::make_unique<State>()) {
  if (kind_ == DigestKind::Xxh64) {
    XXH64_reset(&state_->xxh64, 0);
  } else {
    XXH3_64bits_reset(&state_->xxh3);
  }
}

Digest::Digest(Digest&&) noexcept = default;
Digest& Digest::operator=(Digest&&) noexcept = default;
Digest::~Digest() = default;

void Digest::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // data() may be null
  if (kind_ == DigestKind::Xxh64) {
    XXH64_update(&state_->xxh64, bytes.data(), bytes.size());
  } else {
    XXH3_64bits_update(&state_->xxh3, bytes.data(), bytes.size());
  }
}

uint64_t Digest::value() const {
  return kind_ == DigestKind::Xxh64 ? XXH64_digest(&state_->xxh64) : XXH3_64bits_digest(&state_->xxh3);
}

uint64_t digest_of(DigestKind kind, std::span<const std::byte> bytes) {
  return kind == DigestKind::Xxh64 ? XXH64(bytes.data(), bytes.size(), 0) : XXH3_64bits(bytes.data(), bytes.size());
}

uint64_t digest_of(DigestKind kind, std::string_view text) { return digest_of(kind, std::as_bytes(std::span(text))); }

void add_sized(Digest& digest, std::string_view text) {
  const std::string size = std::to_string(text.size()) + "\n";
  digest.add(std::as_bytes(std::span(size)));
  digest.add(std::as_bytes(std::span(text)));
}

std::string hex(uint64_t value) {
  char text[17];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
  return text;
}

}  // namespace braid
