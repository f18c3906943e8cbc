// The classes of characters and the encoder of UTF-8, both from utf8proc. The classes are kept in a table, since
// scanners look up every character.
#include "braid/tokenize/unicode_classes.h"

#include <utf8proc.h>

#include <vector>

namespace braid::tokenize {
namespace {

CharClass made_class(uint32_t code) {
  if (code == '\r' || code == '\n') return CharClass::Newline;
  if ((code >= 0x9 && code <= 0xD) || code == 0x85) return CharClass::Space;  // White_Space, but not of category Z
  switch (utf8proc_category(static_cast<utf8proc_int32_t>(code))) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::Letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::Number;
    case UTF8PROC_CATEGORY_ZS:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
      return CharClass::Space;
    default:
      return CharClass::Other;
  }
}

std::vector<CharClass> made_classes() {
  std::vector<CharClass> classes(kNumCodes);
  for (uint32_t code = 0; code < kNumCodes; ++code) classes[code] = made_class(code);
  return classes;
}

}  // namespace

const CharClass* char_classes() {
  static const std::vector<CharClass> kClasses = made_classes();
  return kClasses.data();
}

void append_utf8(std::string& out, uint32_t code) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(code), bytes);
  out.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

}  // namespace braid::tokenize
