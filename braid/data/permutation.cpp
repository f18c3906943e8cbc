// The Feistel network of the permutation.
#include "braid/data/permutation.h"

#include "braid/base/errors.h"
#include "braid/base/seeds.h"

namespace braid::data {
namespace {

constexpr uint64_t kRounds = 6;

}  // namespace

Permutation::Permutation(int64_t size, uint64_t key) : size_(static_cast<uint64_t>(size)), key_(key), half_bits_(1) {
  check(size >= 1 && size <= int64_t{1} << 62, "a permutation has between 1 and 2^62 places");
  while (uint64_t{1} << (2 * half_bits_) < size_) ++half_bits_;
  mask_ = (uint64_t{1} << half_bits_) - 1;
}

int64_t Permutation::operator()(int64_t place) const {
  check(place >= 0 && static_cast<uint64_t>(place) < size_, "a place lies inside its permutation");
  uint64_t value = scramble(static_cast<uint64_t>(place));
  while (value >= size_) value = scramble(value);
  return static_cast<int64_t>(value);
}

uint64_t Permutation::scramble(uint64_t value) const {
  uint64_t left = value >> half_bits_, right = value & mask_;
  for (uint64_t round = 0; round < kRounds; ++round) {
    const uint64_t mixed = left ^ (random_bits(key_, round << 32 | right) & mask_);
    left = right;
    right = mixed;
  }
  return left << half_bits_ | right;
}

}  // namespace braid::data
