// Philox and what is drawn from it.
#include "braid/base/seeds.h"

namespace braid {
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * c[0], b = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(b >> 32) ^ c[1] ^ key[0], static_cast<uint32_t>(b),
         static_cast<uint32_t>(a >> 32) ^ c[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return c;
}

std::array<uint32_t, 4> stream_words(uint64_t key, uint64_t block) {
  const auto low = [](uint64_t v) { return static_cast<uint32_t>(v); };
  const auto high = [](uint64_t v) { return static_cast<uint32_t>(v >> 32); };
  return philox({low(block), high(block), 0, 0}, {low(key), high(key)});
}

uint64_t stream_key(uint64_t seed, std::string_view name) {
  uint64_t key = seed;
  for (const char c : name) key = random_bits(key, static_cast<unsigned char>(c));
  return random_bits(key, 0x100 + name.size());
}

uint64_t random_bits(uint64_t key, uint64_t index) {
  const auto w = stream_words(key, index);
  return uint64_t{w[0]} << 32 | w[1];
}

double uniform(uint64_t key, uint64_t index) { return static_cast<double>(random_bits(key, index) >> 11) * 0x1p-53; }

}  // namespace braid
