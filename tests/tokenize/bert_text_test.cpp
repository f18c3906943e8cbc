// The normalizer of BERT and its words. wordpiece_golden_test.cpp compares them with the reference.
#include "braid/tokenize/bert_text.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "braid/tokenize/normal_form.h"
#include "braid/tokenize/unicode_classes.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::bert_text_test {
namespace {

using Strings = std::vector<std::string>;

constexpr BertRules kAll{};

Strings words_of(std::string_view form) {
  Strings words;
  BertWords cursor(form);
  for (auto word = cursor.next(); !word.empty(); word = cursor.next()) words.emplace_back(word);
  return words;
}

Strings words_of_pieces(const std::string& text, const BertRules& rules) {
  Strings words;
  BertPieces pieces(rules);
  pieces.reset(text);
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = pieces.next();
    EXPECT_GT(end, begin);
    const Strings more = words_of(bert_form(text.substr(begin, end - begin), rules));
    words.insert(words.end(), more.begin(), more.end());
    begin = end;
  }
  return words;
}

TEST(BertText, StepsOfTheNormalizer) {
  EXPECT_EQ(bert_form("\u00c9t\u00e9\tA\u200d\x01\u0301b\u00a0c", kAll), "ete ab c");
  EXPECT_EQ(bert_form("x\u6f22y", kAll), "x \u6f22 y");
  EXPECT_EQ(bert_form("\u00c9", {.strip_accents = false}), "\u00e9");
  EXPECT_EQ(bert_form("\u00c9", {.lowercase = false}), "E");
  EXPECT_EQ(bert_form("\u0130", {.strip_accents = false}), "i\u0307");
  EXPECT_EQ(bert_form("a\xFF\x80"
                      "b",
                      kAll),
            "ab");
  EXPECT_EQ(bert_form("a\xFF\x80"
                      "b",
                      {.clean_text = false}),
            "a\uFFFD\uFFFD"
            "b");
  EXPECT_EQ(bert_form("", kAll), "");
}

TEST(BertText, WordsAreCutAtSpacesAndAroundPunctuation) {
  EXPECT_EQ(words_of("  don't stop\u3002now \u00a0$1"), (Strings{"don", "'", "t", "stop", "\u3002", "now", "$", "1"}));
  EXPECT_TRUE(words_of(" \t").empty());
  EXPECT_TRUE(words_of("").empty());
}

TEST(BertText, EveryCharacterMayStandBetweenPieces) {
  for (const BertRules& rules : {kAll, BertRules{false, false, false, false}, BertRules{true, false, true, false}}) {
    // All characters are tried, except that ideographs, Hangul and the high planes are sampled.
    for (uint32_t code = 0; code < kNumCodes; code += code < 0x3400 || (code >= 0xD7A4 && code < 0x12000) ? 1 : 89) {
      if (code >= 0xD800 && code < 0xE000) continue;
      std::string text = "a";
      append_utf8(text, code);
      text += "\u0301\u302eb";
      ASSERT_EQ(words_of_pieces(text, rules), words_of(bert_form(text, rules))) << code;
    }
  }
}

TEST(BertText, WordsOfPiecesAreThoseOfTheText) {
  const Strings parts = {"a",      "B",          " ",      "\n",       ",",      "\u0301",
                         "\u0323", "\u302e",     "\u6f22", "\u3002",   "\u3000", "\u2028",
                         "\x0b",   "\u200d",     "\u00e9", "\u2260",   "<",      "\u0338",
                         "\u0f73", "\U0001d165", "\xFF",   "\xE2\x82", "\uac01", std::string(1, '\0')};
  std::mt19937 drawn(3);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (int i = 0; i < 12; ++i) text += parts[drawn() % parts.size()];
    for (const BertRules& rules : {kAll, BertRules{false, true, true, false}, BertRules{true, false, false, true}}) {
      ASSERT_EQ(words_of_pieces(text, rules), words_of(bert_form(text, rules))) << testing::PrintToString(text);
    }
  }
}

TEST(NormalFormD, DecomposesOrdersAndLeavesAlone) {
  EXPECT_EQ(normal_form_d("\u00e9"), "e\u0301");
  EXPECT_EQ(normal_form_d("\u1ec7"), "e\u0323\u0302");
  EXPECT_EQ(normal_form_d("a\u0301\u0323"), "a\u0323\u0301");
  EXPECT_EQ(normal_form_d("\u0f72\u0f71"), "\u0f71\u0f72");
  EXPECT_EQ(normal_form_d("\u0334\u0344"), "\u0334\u0308\u0301");
  EXPECT_EQ(normal_form_d("\uac01"), "\u1100\u1161\u11a8");
  EXPECT_EQ(normal_form_d("e\xFF\u0323\u0301 \xC3"), "e\xFF\u0323\u0301 \xC3");
  for (const std::string& text : hard_texts()) EXPECT_EQ(normal_form_c(normal_form_d(text)), normal_form_c(text));
}

}  // namespace
}  // namespace braid::tokenize::bert_text_test
