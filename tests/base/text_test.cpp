// Numbers and words as text.
#include "braid/base/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>

namespace braid::text_test {
namespace {

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
  // Of two equally near, the first.
  EXPECT_EQ(nearest("ab", {"aa", "bb"}), "aa");
  // Short words may differ by two.
  EXPECT_EQ(nearest("lr", {"lt"}), "lt");
  EXPECT_EQ(nearest("lr", {"abc"}), "");
}

}  // namespace
}  // namespace braid::text_test
