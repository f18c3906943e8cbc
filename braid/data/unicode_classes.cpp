// The table of classes and the decoder of UTF-8. No file, no pattern.
#include "braid/data/unicode_classes.h"

#include <algorithm>
#include <vector>

#include "braid/data/unicode_ranges.h"

namespace braid {
namespace {

std::vector<CharClass> make_classes() {
  std::vector<CharClass> classes(kNumCodes, CharClass::Other);
  const auto mark = [&](CodeRange range, CharClass value) {
    std::fill(classes.begin() + range.first, classes.begin() + range.last + 1, value);
  };
  for (const CodeRange range : letter_ranges()) mark(range, CharClass::Letter);
  for (const CodeRange range : number_ranges()) mark(range, CharClass::Number);
  // Property White_Space; unchanged since Unicode 6.3.
  constexpr CodeRange kSpaces[] = {{0x9, 0xD},       {0x20, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                   {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                   {0x205F, 0x205F}, {0x3000, 0x3000}};
  for (const CodeRange range : kSpaces) mark(range, CharClass::Space);
  classes['\r'] = classes['\n'] = CharClass::Newline;
  return classes;
}

}  // namespace

const CharClass* char_classes() {
  static const std::vector<CharClass> classes = make_classes();
  return classes.data();
}

Utf8Char utf8_at(std::string_view text, size_t at) {
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

}  // namespace braid
