// What pre-tokenizers ask of a character.
// It knows no patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "braid/base/utf8.h"

namespace braid {

constexpr uint32_t kNumCodes = 0x110000;  // code points of Unicode

enum class CharClass : uint8_t {
  Other,
  Letter,   // \p{L}
  Number,   // \p{N}
  Space,    // \s, the property White_Space, without
  Newline,  // \r and \n
};

// The class of every code point, kNumCodes entries. Made at the first call (about 1 MiB); any thread may call.
const CharClass* char_classes();

// kNotUtf8 is of the class Other.
inline CharClass class_of(const CharClass* classes, uint32_t code) {
  return code == kNotUtf8 ? CharClass::Other : classes[code];
}

// Appends the UTF-8 form of a code point below 0x110000.
template <class String>
void append_utf8(String& out, uint32_t code) {
  if (code < 0x80) {
    out.push_back(static_cast<char>(code));
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xC0, 0xE0, 0xF0};
  out.push_back(static_cast<char>(kLead[more] | (code >> (6 * more))));
  for (int i = more - 1; i >= 0; --i) out.push_back(static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F)));
}

}  // namespace braid
