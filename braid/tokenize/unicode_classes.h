// The character classes of pre-tokenizers. The version of Unicode in utf8proc decides which characters are letters
// (docs/tokenizer.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "braid/base/utf8.h"

namespace braid::tokenize {

constexpr uint32_t kNumCodes = 0x110000;  // code points of Unicode

enum class CharClass : uint8_t {
  Other,
  Letter,   // \p{L}
  Number,   // \p{N}
  Space,    // \s, the property White_Space, except \r and \n
  Newline,  // \r and \n
};

// Returns the class of every code point, kNumCodes entries. The table (about 1 MiB) is made at the first call.
// Thread-safe.
const CharClass* char_classes();

// Returns the class of a code point; kNotUtf8 is Other.
inline CharClass class_of(const CharClass* classes, uint32_t code) {
  return code == kNotUtf8 ? CharClass::Other : classes[code];
}

// Appends the UTF-8 form of a code point below 0x110000.
void append_utf8(std::string& out, uint32_t code);

}  // namespace braid::tokenize
