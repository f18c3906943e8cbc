// Numbers and words as text.
#include "braid/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace braid::text_test {
namespace {

TEST(Counted, HasOneOrSeveral) {
  EXPECT_EQ(counted(1, "rank"), "1 rank");
  EXPECT_EQ(counted(size_t{0}, "rank"), "0 ranks");
  EXPECT_EQ(counted(int64_t{2}, "microbatch"), "2 microbatches");
  EXPECT_EQ(noun_of(3, "process"), "processes");
}

TEST(Text, CatAndJoined) {
  EXPECT_EQ(cat("rank ", 3, " of ", 4u, ": ", 0.5), "rank 3 of 4: 0.5");
  EXPECT_EQ(joined({}), "");
  EXPECT_EQ(joined({"a"}), "a");
  EXPECT_EQ(joined({"a", "b", "c"}), "a, b, c");
  EXPECT_EQ(joined({"a", "", "c"}, "|"), "a||c");
}

TEST(Text, Fixed) {
  EXPECT_EQ(fixed(2.5, 2), "2.50");
  EXPECT_EQ(fixed(-0.125, 1), "-0.1");
  EXPECT_EQ(fixed(7, 0), "7");
}

TEST(Text, ExactReadsBack) {
  EXPECT_EQ(exact(0.1), "0.1");
  EXPECT_EQ(exact(25), "25");
  EXPECT_EQ(exact(1e-8), "1e-08");
  using Limits = std::numeric_limits<double>;
  for (const double value : {1.0 / 3, 0.1 + 0.2, 5e-324, Limits::max(), Limits::lowest(), Limits::min(), -0.0, 1e22}) {
    EXPECT_EQ(std::strtod(exact(value).c_str(), nullptr), value) << exact(value);
    EXPECT_EQ(exact(value)[0] == '-', std::signbit(value));
  }
}

TEST(Text, HumanBytes) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_bytes(-1536), "-1.5 KiB");
  EXPECT_EQ(human_bytes(25.0 * 1024 * 1024), "25.0 MiB");
  EXPECT_EQ(human_bytes(5e15), "4547.5 TiB");
}

TEST(EditDistance, CountsEachKindOfSlip) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("layers", "layers"), 0);
  EXPECT_EQ(edit_distance("layer", "layers"), 1);
  EXPECT_EQ(edit_distance("laxers", "layers"), 1);
  EXPECT_EQ(edit_distance("alyers", "layers"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  // Optimal string alignment: a swapped pair is not edited again.
  EXPECT_EQ(edit_distance("ca", "abc"), 3);
}

TEST(EditDistance, IsSymmetric) {
  const std::vector<std::string> words = {"", "a", "ab", "ba", "gpipe", "1f1b", "1f1bb", "tensor", "tenors"};
  for (const auto& a : words) {
    for (const auto& b : words) {
      EXPECT_EQ(edit_distance(a, b), edit_distance(b, a)) << a << " " << b;
      EXPECT_EQ(edit_distance(a, b) == 0, a == b);
    }
  }
}

TEST(Nearest, FindsTheLikelyWordOrNone) {
  const std::vector<std::string> words = {"gpipe", "1f1b", "zb1p"};
  EXPECT_EQ(nearest("1f1bb", words), "1f1b");
  EXPECT_EQ(nearest("1f1b", words), "1f1b");
  EXPECT_EQ(nearest("pipe", words), "gpipe");
  EXPECT_EQ(nearest("interleaved", words), "");
  EXPECT_EQ(nearest("gpipe", {}), "");
  // Two are equally near: the first wins.
  EXPECT_EQ(nearest("ab", {"aa", "bb"}), "aa");
  // Short words may differ by two.
  EXPECT_EQ(nearest("lr", {"lt"}), "lt");
  EXPECT_EQ(nearest("lr", {"abc"}), "");
}

TEST(Nearest, CaseIsNoDifference) {
  EXPECT_EQ(nearest("GPIPE", {"1f1b", "gpipe"}), "gpipe");
  EXPECT_EQ(nearest("Train.Steps", {"train.seed", "train.steps"}), "train.steps");
  EXPECT_EQ(nearest("f", {"B", "F"}), "F");
}

TEST(Nearest, AVeryLongWordCostsNothing) {
  EXPECT_EQ(nearest(std::string(20'000'000, 'F'), {"gpipe", "1f1b"}), "");  // a table of distances would have 500 MB
  EXPECT_EQ(nearest("1f", {"1f1b-with-a-very-long-name-behind-it", "1f1"}), "1f1");
}

TEST(Printable, LeavesTextAsItIs) {
  for (const std::string text : {"", "a b\\c \"d\"", "gr\xC3\xBC\xC3\x9F \xE2\x82\xAC \xF0\x9F\x98\x80"}) {
    EXPECT_EQ(printable(text, 100), text);
  }
}

TEST(Printable, NothingSteersATerminalOrEndsTheText) {
  EXPECT_EQ(printable("a\x1b[31mb", 100), "a\\x1b[31mb");
  EXPECT_EQ(printable({"a\0b\x7f\r", 5}, 100), "a\\x00b\\x7f\\x0d");
  EXPECT_EQ(printable("one\n\ttwo", 100), "one\\n\\ttwo");
  EXPECT_EQ(printable("one\n\ttwo", 100, LineBreaks::Kept), "one\n\\ttwo");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m",
                      100),
            "\\xc2\\x9b31m");                                               // the control sequence introducer of C1
  EXPECT_EQ(printable("\xFF\xE2\x82|\x9B", 100), "\\xff\\xe2\\x82|\\x9b");  // no UTF-8
}

TEST(Printable, CutsBetweenCharactersAndSaysHowLongItWas) {
  EXPECT_EQ(printable("abcdef", 6), "abcdef");
  EXPECT_EQ(printable("abcdef", 4), "abcd... (6 bytes)");
  EXPECT_EQ(printable("ab\xE2\x82\xAC", 4), "ab... (5 bytes)");
  EXPECT_LT(printable(std::string(20'000'000, 'x'), 300).size(), 330u);
}

}  // namespace
}  // namespace braid::text_test
