// Decodes characters from bytes that may not be UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

constexpr uint32_t kNotUtf8 = 0xFFFFFFFF;

struct Utf8Char {
  uint32_t code = kNotUtf8;  // code point, or kNotUtf8
  uint32_t bytes = 1;
};

// Returns the character that begins at `at`. REQUIRES: at < text.size(). A byte that begins no well-formed sequence
// (overlong forms, surrogates, codes above 0x10FFFF, sequences cut off) is a character of one byte with the code
// kNotUtf8. Source: The Unicode Standard, table 3-7, "Well-Formed UTF-8 Byte Sequences".
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

// Returns true if `start` is the well-formed beginning of one character. REQUIRES: `start` is not empty.
bool begins_character(std::string_view start);

// A decoder for bytes that arrive in pieces. Bytes that no later byte can complete to a character become U+FFFD, one
// for each maximal subpart of a character (The Unicode Standard, section 3.9, "U+FFFD Substitution of Maximal
// Subparts"). The decoded text does not depend on how the bytes are cut into pieces.
class WholeCharacters {
 public:
  // Adds bytes. Returns the characters that are now complete, and holds back a last one that later bytes may complete.
  std::string add(std::string_view bytes);
  // Ends the input. Returns U+FFFD if bytes were held back, else an empty string.
  std::string end();

 private:
  std::string held_;
};

// Returns all characters of `bytes` at once.
std::string whole_characters(std::string_view bytes);

}  // namespace braid
