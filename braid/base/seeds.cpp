// Philox and what is drawn from it.
#include "braid/base/seeds.h"

namespace braid {
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> c, std::array<uint32_t, 2> key) {
  const PhiloxWords w = philox_words({{c[0], c[1], c[2], c[3]}}, uint64_t{key[1]} << 32 | key[0]);
  return {w.at[0], w.at[1], w.at[2], w.at[3]};
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
