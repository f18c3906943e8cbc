// Character classes of pre-tokenizers. Which characters are letters depends on the version of Unicode that utf8proc
// knows (docs/tokenizer.md).
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
void append_utf8(std::string& out, uint32_t code);

}  // namespace braid::tokenize
