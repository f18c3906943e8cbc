// Which bytes are a character.
#include "braid/tokenize/unicode_classes.h"

#include <gtest/gtest.h>

#include <string>

namespace braid::tokenize::unicode_classes_test {
namespace {

TEST(Utf8, EveryCodePointComesBackAndNothingElseIsOne) {
  for (uint32_t code = 0; code < 0x110000; ++code) {
    std::string text;
    append_utf8(text, code);
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    const Utf8Char c = utf8_at(text, 0);
    ASSERT_EQ(c.code, is_surrogate ? kNotUtf8 : code);
    ASSERT_EQ(c.bytes, is_surrogate ? 1 : text.size());
    if (text.size() > 1) {
      ASSERT_EQ(utf8_at(text.substr(0, text.size() - 1), 0).code, kNotUtf8) << code;
    }
  }
  constexpr unsigned char kEdges[] = {0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
  for (int lead = 0; lead < 256; ++lead) {
    for (const unsigned char second : kEdges) {
      for (const unsigned char third : kEdges) {
        const std::string text = {static_cast<char>(lead), static_cast<char>(second), static_cast<char>(third), '\xBF'};
        const Utf8Char c = utf8_at(text, 0);
        if (c.code == kNotUtf8) continue;
        std::string again;
        append_utf8(again, c.code);
        ASSERT_EQ(text.substr(0, c.bytes), again);  // the shortest form, and of these bytes
      }
    }
  }
}

TEST(CharClasses, SpacesAndNewlinesAndBytesThatAreNone) {
  const CharClass* classes = char_classes();
  EXPECT_EQ(class_of(classes, '\n'), CharClass::Newline);
  EXPECT_EQ(class_of(classes, '\v'), CharClass::Space);
  EXPECT_EQ(class_of(classes, 0x3000), CharClass::Space);
  EXPECT_EQ(class_of(classes, 0x180E), CharClass::Other);
  EXPECT_EQ(class_of(classes, 0x6F22), CharClass::Letter);
  EXPECT_EQ(class_of(classes, 0xBD), CharClass::Number);
  EXPECT_EQ(class_of(classes, kNotUtf8), CharClass::Other);
}

}  // namespace
}  // namespace braid::tokenize::unicode_classes_test
