// Where text is cut: the reference's pieces, the scanners against the general engine, what expressions are refused.
#include "braid/tokenize/pretokenizer.h"

#include <gtest/gtest.h>
#include <utf8proc.h>

#include <algorithm>
#include <memory>
#include <random>
#include <set>

#include "braid/base/errors.h"
#include "braid/tokenize/regex_translation.h"
#include "braid/tokenize/unicode_classes.h"
#include "tests/tokenize/bpe_golden.h"

namespace braid::tokenize::pretokenizer_test {
namespace {

std::vector<size_t> ends(PieceCursor& cursor, std::string_view text) {
  std::vector<size_t> all;
  cursor.reset(text);
  for (size_t end = 0; end < text.size();) all.push_back(end = cursor.next());
  return all;
}

std::vector<std::string> pieces(const PretokenizerSpec& spec, std::string_view text) {
  std::vector<std::string> all;
  size_t begin = 0;
  for (const size_t end : ends(*cut_by(spec), text)) {
    all.emplace_back(text.substr(begin, end - begin));
    begin = end;
  }
  return all;
}

class Pattern : public testing::TestWithParam<std::string> {
 protected:
  PretokenizerSpec spec() const { return {{pattern_regex(GetParam())}}; }
};
INSTANTIATE_TEST_SUITE_P(All, Pattern, testing::ValuesIn(pattern_names()), [](const auto& name) { return name.param; });

TEST_P(Pattern, CutsAsTheReference) {
  const auto scanner = cut_by(spec()), engine = cut_by_general_engine(spec());
  const auto& golden = bpe_golden().at("ends").at(GetParam());
  const auto texts = hard_texts();
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto expected = golden.at(i).get<std::vector<size_t>>();
    EXPECT_EQ(ends(*scanner, texts[i]), expected) << texts[i];
    // The last text has letters of a Unicode version that the engine may not know.
    if (i + 1 < texts.size() && texts[i].find("\u180e") == std::string::npos) {
      EXPECT_EQ(ends(*engine, texts[i]), expected) << texts[i];
    }
  }
}

// Texts end where their memory ends, so that AddressSanitizer sees a read behind them: a string has a byte more.
TEST_P(Pattern, NoByteBehindTheTextIsRead) {
  const auto scanner = cut_by(spec());
  for (const std::string& text : hard_texts()) {
    for (size_t size = 1; size <= std::min<size_t>(text.size(), 100); ++size) {
      const auto exact = std::make_unique<char[]>(size);
      std::copy_n(text.begin(), size, exact.get());
      const auto found = ends(*scanner, {exact.get(), size});
      EXPECT_EQ(found.back(), size);
    }
  }
}

// The codes c for which the engine finds `property` in a text: a newline behind each is cut off where it does.
std::set<uint32_t> codes_with(const std::string& property) {
  std::string text;
  std::vector<std::pair<size_t, uint32_t>> code_ends;
  for (uint32_t code = 1; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    append_utf8(text, code);
    code_ends.emplace_back(text.size(), code);
    text += "\n";
  }
  const auto cut = ends(*cut_by({{"(?<=" + property + ")\\n"}}), text);
  const std::set<size_t> cuts(cut.begin(), cut.end());
  std::set<uint32_t> codes;
  for (const auto& [end, code] : code_ends) {
    if (cuts.count(end) > 0 && code != '\n') codes.insert(code);
  }
  return codes;
}

TEST(CharClasses, AreTheEnginesUpToUnicodeVersions) {
  const auto letters = codes_with(R"(\p{L})"), numbers = codes_with(R"(\p{N})"), spaces = codes_with(R"([\s])");
  const auto unassigned = codes_with(R"(\p{Cn})");
  const CharClass* classes = char_classes();
  size_t different = 0;
  for (uint32_t code = 1; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const CharClass engines = letters.count(code) > 0                  ? CharClass::Letter
                              : numbers.count(code) > 0                ? CharClass::Number
                              : code == '\n' || code == '\r'           ? CharClass::Newline
                              : spaces.count(code) > 0 || code == '\n' ? CharClass::Space
                                                                       : CharClass::Other;
    if (engines == classes[code]) continue;
    ++different;
    const bool engine_is_older_here = unassigned.count(code) > 0;
    const bool engine_is_newer_here = utf8proc_category(static_cast<int>(code)) == UTF8PROC_CATEGORY_CN;
    EXPECT_TRUE(engine_is_older_here || engine_is_newer_here) << std::hex << code;
  }
  EXPECT_LT(different, 20000u);
  EXPECT_GT(letters.size(), 100000u);
  EXPECT_GT(spaces.size(), 20u);
}

// Letters, numbers, spaces and signs that no version of Unicode disagrees on, and bytes that are not UTF-8.
std::string hostile(std::mt19937& random) {
  static const std::vector<std::string> kPool = {
      "a",      "S",      "t",        "re",       "LL",           "'",      "'s",     "'VE",        "'\u017F", "\u017F",
      " ",      "  ",     "\n",       "\r\n",     "\t",           "\v",     "\f",     "\r",         "0",       "12",
      "1234",   "!",      "...",      "#",        "\u00e9",       "\u6f22", "\uac00", "\u0661",     "½",       "Ⅷ",
      "\u0301", "\u3000", "\u2028",   "\u0085",   "\u00a0",       "\u200b", "\u200d", "\U0001F469", "\ufffd",  "\x01",
      "\xFF",   "\xC3",   "\xE6\xBC", "\xF0\x9F", "\xED\xA0\x80", "\x80",   "İ",      "K"};
  std::string text;
  const size_t size = 1 + random() % 60;
  for (size_t i = 0; i < size; ++i) text += kPool[random() % kPool.size()];
  return text;
}

TEST_P(Pattern, ScannerAndEngineAgreeOnHostileText) {
  std::mt19937 random(11);
  const auto scanner = cut_by(spec()), engine = cut_by_general_engine(spec());
  const int rounds = std::getenv("BRAID_FULL") != nullptr ? 400000 : 8000;
  for (int round = 0; round < rounds; ++round) {
    const std::string text = hostile(random);
    ASSERT_EQ(ends(*scanner, text), ends(*engine, text)) << testing::PrintToString(text);
  }
  EXPECT_EQ(ends(*scanner, not_utf8()), ends(*engine, not_utf8()));
}

TEST_P(Pattern, LongRunsAreCutInOneWalk) {
  const auto scanner = cut_by(spec());
  const std::string spaces(1 << 20, ' ');
  EXPECT_EQ(ends(*scanner, spaces + "x").size(), 2u);
  EXPECT_EQ(ends(*scanner, std::string(1 << 20, 'a')).size(), 1u);
}

TEST(Pretokenizer, CutsWordsWithTheSpaceInFront) {
  EXPECT_EQ(pieces({{pattern_regex("gpt2")}}, "I'll go  now!\n\n"),
            (std::vector<std::string>{"I", "'ll", " go", " ", " now", "!", "\n\n"}));
  EXPECT_EQ(pieces({{pattern_regex("llama3")}}, "I'LL pay 12345\n\nor(not)"),
            (std::vector<std::string>{"I", "'LL", " pay", " ", "123", "45", "\n\n", "or", "(not", ")"}));
  EXPECT_EQ(pieces({{pattern_regex("qwen2")}}, "a 12"), (std::vector<std::string>{"a", " ", "1", "2"}));
}

TEST(Pretokenizer, StagesCutThePiecesOfTheOneBefore) {
  EXPECT_EQ(pieces({{R"(\p{N})", pattern_regex("gpt2")}}, "ab12 cd"),
            (std::vector<std::string>{"ab", "1", "2", " cd"}));
  EXPECT_EQ(pieces({}, "all of it"), (std::vector<std::string>{"all of it"}));
  EXPECT_EQ(pieces({{"x*"}}, "axxb"), (std::vector<std::string>{"a", "xx", "b"}));  // empty matches give no piece
}

TEST(RegexTranslation, KeepsTheMeaningOrRefuses) {
  EXPECT_EQ(pieces({{R"(\s+)"}}, "a\u180eb\u3000c"), (std::vector<std::string>{"a\u180eb", "\u3000", "c"}));
  EXPECT_EQ(pieces({{R"(\S+)"}}, "a\u180eb\u3000c"), (std::vector<std::string>{"a\u180eb", "\u3000", "c"}));
  for (const char* regex : {R"(\w+)", R"(\h)", R"(\d)", R"([a[bc]])", R"([a-z&&[^x]])", R"([[:alpha:]])", R"([^\S\n])",
                            R"((?m)a)", R"((a)\k<1>)", R"(a\)"}) {
    EXPECT_NE(translate_regex(regex).refused, "") << regex;
    EXPECT_THROW(cut_by({{regex}}), ConfigError) << regex;
  }
  EXPECT_THROW(cut_by({{"(a"}}), ConfigError);
}

}  // namespace
}  // namespace braid::tokenize::pretokenizer_test
