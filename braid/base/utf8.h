// Characters out of bytes that need not be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

constexpr uint32_t kNotUtf8 = 0xFFFFFFFF;

struct Utf8Char {
  uint32_t code = kNotUtf8;  // or kNotUtf8
  uint32_t bytes = 1;
};

// The character that begins at `at` < text.size(). A byte that begins no well-formed sequence (overlong forms,
// surrogates, codes above 0x10FFFF, cut off) is a character of one byte with the code kNotUtf8.
// Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
inline Utf8Char utf8_at(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) -> uint32_t { return static_cast<unsigned char>(text[i]); };
  const uint32_t lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {};
  const uint32_t bytes = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  if (text.size() - at < bytes) return {};
  // The second byte's range rules out overlong forms, surrogates and codes that are too high.
  const uint32_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint32_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (byte(at + 1) < low || byte(at + 1) > high) return {};
  uint32_t code = ((lead & (0x7FU >> bytes)) << 6) | (byte(at + 1) & 0x3F);
  for (uint32_t i = 2; i < bytes; ++i) {
    if ((byte(at + i) & 0xC0) != 0x80) return {};
    code = (code << 6) | (byte(at + i) & 0x3F);
  }
  return {code, bytes};
}

// Returns true if `start`, which is not empty, is the well-formed beginning of one character.
bool begins_character(std::string_view start);

// Bytes that come piece by piece, as whole characters. Bytes that no byte behind them can make a character become
// U+FFFD, one for each longest part that a character could have begun with (The Unicode Standard, section 3.9,
// "U+FFFD Substitution of Maximal Subparts"). However the bytes are cut into pieces, the text is the same.
class WholeCharacters {
 public:
  // The characters that are whole by now; a last one that may still become whole is held back.
  std::string add(std::string_view bytes);
  // No more bytes come: U+FFFD for what was held back, else nothing.
  std::string end();

 private:
  std::string held_;
};

// All of it at once.
std::string whole_characters(std::string_view bytes);

}  // namespace braid
