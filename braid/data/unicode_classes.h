// What pre-tokenizers ask of a character, and reading characters out of bytes that need not be UTF-8. Which characters
// are letters depends on the version of Unicode that utf8proc knows (docs/tokenizer.md). It knows no patterns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

constexpr uint32_t kNotUtf8 = 0xFFFFFFFF;

struct Utf8Char {
  uint32_t code = kNotUtf8;  // or kNotUtf8
  uint32_t bytes = 1;
};

// The character that begins at `at` < text.size(). A byte that begins no well-formed sequence (overlong forms,
// surrogates, codes above 0x10FFFF, cut off) is a character of one byte with the code kNotUtf8.
// Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
Utf8Char utf8_at(std::string_view text, size_t at);

// kNotUtf8 is of the class Other.
inline CharClass class_of(const CharClass* classes, uint32_t code) {
  return code == kNotUtf8 ? CharClass::Other : classes[code];
}

// Appends the UTF-8 form of a code point below 0x110000.
void append_utf8(std::string& out, uint32_t code);

}  // namespace braid
