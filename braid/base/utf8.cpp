// Cuts bytes into whole UTF-8 characters: holds back incomplete ones and replaces invalid bytes.
#include "braid/base/utf8.h"

#include <algorithm>

namespace braid {
namespace {

constexpr size_t kMostBytesOfCharacter = 4;
constexpr const char* kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Returns the number of bytes at `at` with which a character could have begun, at least 1.
// REQUIRES: the bytes at `at` are no character.
size_t broken_bytes(std::string_view text, size_t at) {
  size_t length = 1;
  while (at + length < text.size() && begins_character(text.substr(at, length + 1))) ++length;
  return length;
}

}  // namespace

// After some first bytes the second byte has a range of its own. Every such range contains 0x80 or 0xBF.
bool begins_character(std::string_view start) {
  if (start.size() >= kMostBytesOfCharacter) return false;
  for (const char* rest : {"\x80\x80\x80", "\xBF\xBF\xBF"}) {
    if (utf8_at(std::string(start) + rest, 0).bytes > start.size()) return true;
  }
  return false;
}

std::string WholeCharacters::add(std::string_view bytes) {
  held_ += bytes;
  std::string whole;
  size_t at = 0;
  while (at < held_.size()) {
    const Utf8Char character = utf8_at(held_, at);
    size_t length = character.bytes;
    if (character.code == kNotUtf8) {
      length = broken_bytes(held_, at);
      const bool is_last = at + length == held_.size();
      if (is_last && begins_character(std::string_view(held_).substr(at))) break;
      whole += kReplacement;
    } else {
      whole.append(held_, at, length);
    }
    at += length;
  }
  held_.erase(0, at);
  return whole;
}

std::string WholeCharacters::end() {
  const bool cut = !held_.empty();
  held_.clear();
  return cut ? kReplacement : "";
}

std::string whole_characters(std::string_view bytes) {
  WholeCharacters characters;
  std::string whole = characters.add(bytes);
  return whole + characters.end();
}

}  // namespace braid
