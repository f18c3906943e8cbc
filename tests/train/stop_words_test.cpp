// Where a text ends, however it is cut into pieces.
#include <gtest/gtest.h>

#include "braid/train/token_choice.h"

namespace braid::train::stop_words_test {
namespace {

// Returns the result of a text in pieces of `size` bytes.
std::string cut(const std::string& text, size_t size, const std::vector<std::string>& words) {
  StopWords stops(words);
  std::string certain;
  for (size_t at = 0; at < text.size() && !stops.met(); at += size) certain += stops.add(text.substr(at, size));
  return certain + (stops.met() ? "|" : stops.end());
}

TEST(StopWords, EndTheTextWhereverPiecesAreCut) {
  struct Case {
    std::string text;
    std::vector<std::string> words;
    std::string expected;
  };
  const std::vector<Case> cases = {
      {"one. two. three", {". "}, "one|"},  {"one. two", {"\n"}, "one. two"}, {"aaab", {"aab"}, "a|"},
      {"abcd", {"bcd", "b"}, "a|"},   // "b" is whole first
      {"xabcy", {"c", "abc"}, "x|"},  // both end there: the longer counts
      {"ab ab abc", {"abcd"}, "ab ab abc"}, {"stop", {"stop"}, "|"},          {"anything", {}, "anything"}};
  for (const Case& one : cases) {
    for (const size_t size : {1, 2, 3, 100}) {
      EXPECT_EQ(cut(one.text, size, one.words), one.expected) << one.text << " by " << size;
    }
  }
}

TEST(StopWords, OnlyWhatMayBecomeOneIsHeldBack) {
  StopWords stops({"\nUser:", "###"});
  EXPECT_EQ(stops.add("a b"), "a b");
  EXPECT_EQ(stops.add("c\n"), "c");
  EXPECT_EQ(stops.add("Us"), "");
  EXPECT_EQ(stops.add("e "), "\nUse ");
  EXPECT_EQ(stops.add("##"), "");
  EXPECT_EQ(stops.end(), "##");
  EXPECT_FALSE(stops.met());
}

}  // namespace
}  // namespace braid::train::stop_words_test
