// Which characters are made of others, and how marks order.
// It knows no text: normal_form.h does.
#pragma once

#include <cstdint>
#include <span>

namespace braid {

struct Decomposition {
  uint32_t code = 0;
  uint32_t first = 0;
  uint32_t second = 0;    // 0: `first` alone
  bool composes = false;  // the two become `code` in the normal form C
};

struct CombiningRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included
  uint8_t value = 0;  // Canonical_Combining_Class, not 0
};

// One step each, ascending by code; without Hangul, which is arithmetic.
std::span<const Decomposition> decompositions();
// Ascending.
std::span<const CombiningRange> combining_ranges();

}  // namespace braid
