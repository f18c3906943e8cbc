// Letters and numbers of Unicode as ranges of code points.
// It knows no text: unicode_classes.h does.
#pragma once

#include <cstdint>
#include <span>

namespace braid {

struct CodeRange {
  uint32_t first = 0;
  uint32_t last = 0;  // included
};

// Ascending. General categories L* and N* of Unicode 16.
std::span<const CodeRange> letter_ranges();
std::span<const CodeRange> number_ranges();

}  // namespace braid
