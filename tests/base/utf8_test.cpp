// Whole characters out of bytes that come in any pieces.
#include "braid/base/utf8.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace braid::utf8_test {
namespace {

#define REPLACED "\xEF\xBF\xBD"  // U+FFFD

TEST(WholeCharacters, HoldsBackUntilACharacterIsWhole) {
  WholeCharacters text;
  EXPECT_EQ(text.add("a\xE2"), "a");
  EXPECT_EQ(text.add("\x82"), "");
  EXPECT_EQ(text.add("\xAC!"), "\xE2\x82\xAC!");
  EXPECT_EQ(text.end(), "");
  EXPECT_EQ(text.add("\xF0\x9F\x98"), "");
  EXPECT_EQ(text.end(), REPLACED);
  EXPECT_EQ(text.end(), "");
}

TEST(BeginsCharacter, WhereAWellFormedOneIsCut) {
  for (const char* start : {"\xC3", "\xE2", "\xE2\x82", "\xED\x9F", "\xF0\x9F\x98", "\xF4\x8F"}) {
    EXPECT_TRUE(begins_character(start)) << start;
  }
  for (const char* start :
       {"a", "\xC3\xA9", "\xC1", "\x80", "\xE0\x80", "\xED\xA0", "\xF4\x90", "\xE2z", "\xF0\x9F\x98!?"}) {
    EXPECT_FALSE(begins_character(start)) << start;
  }
}

// The rows of The Unicode Standard's table 3-8 and its neighbours: "U+FFFD Substitution of Maximal Subparts".
TEST(WholeCharacters, ReplacesWhatNeverBecomesOne) {
  EXPECT_EQ(whole_characters("\xC0\xAF\xE0\x80\xBF\xF0\x81\x82\x41"),
            REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED "A");
  EXPECT_EQ(whole_characters("\xED\xA0\x80\xED\xBF\xBF\xED\xAF\x41"),
            REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED REPLACED "A");
  EXPECT_EQ(whole_characters("\xF4\x91\x92\x93\xFF\x41\x80\xBF\x42"),
            REPLACED REPLACED REPLACED REPLACED REPLACED "A" REPLACED REPLACED "B");
  EXPECT_EQ(whole_characters("\xE1\x80\xE2\xF0\x91\x92\xF1\xBF\x41"), REPLACED REPLACED REPLACED REPLACED "A");
}

TEST(WholeCharacters, EveryCutGivesTheSameTextInWholePieces) {
  constexpr unsigned char kBytes[] = {0x41, 0x80, 0x90, 0x9F, 0xA0, 0xBF, 0xC3, 0xE0, 0xE2, 0xED, 0xF0, 0xF4, 0xFF};
  std::mt19937 dice(1);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bytes(8, '\0');
    for (char& byte : bytes) byte = static_cast<char>(kBytes[dice() % std::size(kBytes)]);
    const std::string whole = whole_characters(bytes);
    for (size_t at = 0; at < whole.size(); at += utf8_at(whole, at).bytes) ASSERT_NE(utf8_at(whole, at).code, kNotUtf8);
    WholeCharacters text;
    std::string pieces;
    for (const char byte : bytes) {
      const std::string piece = text.add({&byte, 1});
      ASSERT_EQ(whole_characters(piece), piece);
      pieces += piece;
    }
    ASSERT_EQ(pieces + text.end(), whole);
  }
}

}  // namespace
}  // namespace braid::utf8_test
