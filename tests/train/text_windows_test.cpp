// Every token but the first is predicted once.
#include <gtest/gtest.h>

#include "braid/train/text_loss.h"

namespace braid::train::text_windows_test {
namespace {

TEST(TextWindows, FollowEachOther) {
  const std::vector<TextWindow> expected = {{0, 4, 4}, {4, 4, 4}, {8, 1, 1}};
  EXPECT_EQ(text_windows(10, 4, 4), expected);
  EXPECT_EQ(text_windows(9, 4, 4).size(), 2u);
  EXPECT_EQ(text_windows(2, 4, 4), (std::vector<TextWindow>{{0, 1, 1}}));
  EXPECT_TRUE(text_windows(1, 4, 4).empty());
  EXPECT_TRUE(text_windows(0, 4, 4).empty());
}

TEST(TextWindows, OverlapByTheStride) {
  const std::vector<TextWindow> expected = {{0, 4, 4}, {2, 4, 2}, {4, 4, 2}};
  EXPECT_EQ(text_windows(9, 4, 2), expected);
  for (int64_t tokens = 0; tokens < 30; ++tokens) {
    for (int64_t stride = 1; stride <= 7; ++stride) {
      int64_t predicted = 0;
      for (const TextWindow& w : text_windows(tokens, 7, stride)) {
        EXPECT_EQ(w.begin + w.length, predicted + w.num_new);
        EXPECT_GT(w.num_new, 0);
        EXPECT_LE(w.num_new, w.length);
        EXPECT_LE(w.length, 7);
        predicted += w.num_new;
      }
      EXPECT_EQ(predicted, std::max<int64_t>(0, tokens - 1));
    }
  }
}

}  // namespace
}  // namespace braid::train::text_windows_test
