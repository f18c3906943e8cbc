// The four lanes of XXH64 and its tail. Little-endian machines only.
#include "braid/base/digest.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

namespace braid {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint64_t kPrimes[] = {0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63,
                                0x27D4EB2F165667C5};

uint64_t mixed(uint64_t lane, uint64_t word) { return std::rotl(lane + word * kPrimes[1], 31) * kPrimes[0]; }

template <class Word>
uint64_t load(const std::byte* at) {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

uint64_t avalanche(uint64_t hash) {
  hash = (hash ^ hash >> 33) * kPrimes[1];
  hash = (hash ^ hash >> 29) * kPrimes[2];
  return hash ^ hash >> 32;
}

}  // namespace

void Digest::add(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;  // data() may be null
  const size_t kept = total_ % rest_.size();
  total_ += bytes.size();
  if (kept > 0) {
    const size_t taken = std::min(bytes.size(), rest_.size() - kept);
    std::memcpy(rest_.data() + kept, bytes.data(), taken);
    bytes = bytes.subspan(taken);
    if (kept + taken < rest_.size()) return;
    consume(rest_.data());
  }
  for (; bytes.size() >= rest_.size(); bytes = bytes.subspan(rest_.size())) consume(bytes.data());
  if (!bytes.empty()) std::memcpy(rest_.data(), bytes.data(), bytes.size());
}

void Digest::consume(const std::byte* stripe) {
  for (size_t i = 0; i < lanes_.size(); ++i) lanes_[i] = mixed(lanes_[i], load<uint64_t>(stripe + 8 * i));
}

uint64_t Digest::value() const {
  uint64_t hash = kPrimes[4];
  if (total_ >= rest_.size()) {
    hash = std::rotl(lanes_[0], 1) + std::rotl(lanes_[1], 7) + std::rotl(lanes_[2], 12) + std::rotl(lanes_[3], 18);
    for (const uint64_t lane : lanes_) hash = (hash ^ mixed(0, lane)) * kPrimes[0] + kPrimes[3];
  }
  hash += total_;
  const std::byte* at = rest_.data();
  const std::byte* const end = at + total_ % rest_.size();
  for (; end - at >= 8; at += 8) {
    hash = std::rotl(hash ^ mixed(0, load<uint64_t>(at)), 27) * kPrimes[0] + kPrimes[3];
  }
  for (; end - at >= 4; at += 4) {
    hash = std::rotl(hash ^ load<uint32_t>(at) * kPrimes[0], 23) * kPrimes[1] + kPrimes[2];
  }
  for (; at != end; ++at) hash = std::rotl(hash ^ load<uint8_t>(at) * kPrimes[4], 11) * kPrimes[0];
  return avalanche(hash);
}

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
