// The words of progress, at every width.
#include "braid/report/progress.h"

#include <gtest/gtest.h>

namespace braid::report::progress_test {
namespace {

Progress sample() {
  Progress progress;
  progress.step = 120;
  progress.steps = 1000;
  progress.loss = 2.34512;
  progress.lr = 3e-4;
  progress.grad_norm = 1.2341;
  progress.tokens_per_second = 45210;
  progress.utilisation = 0.4121;
  progress.bubble_fraction = 0.083;
  progress.peak_bytes = 1.25 * 1024 * 1024 * 1024;
  progress.seconds_per_step = 0.25;
  return progress;
}

int columns(const std::string& utf8) {
  int count = 0;
  for (const char c : utf8) count += (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  return count;
}

TEST(Progress, Line) {
  EXPECT_EQ(progress_line(sample()),
            "step 120/1000  loss 2.3451  lr 3.00e-04  grad norm 1.2341  45.2k tokens/s  mfu 41.2%  bubble 8.3%  "
            "peak 1.2 GiB  eta 3m40s");
}

TEST(Progress, UnknownValuesAreLeftOut) {
  Progress progress;
  progress.step = 1;
  progress.steps = 5;
  progress.loss = 12.5;
  EXPECT_EQ(progress_line(progress), "step 1/5  loss 12.50");
}

TEST(Progress, BarFitsAndDropsTheLeastImportantFirst) {
  EXPECT_EQ(progress_bar(sample(), 60), "120/1000 ━━━──────────────────── 12%  loss 2.3451  eta 3m40s");
  for (int width = 24; width < 200; ++width) EXPECT_LE(columns(progress_bar(sample(), width)), width);
  EXPECT_EQ(progress_bar(sample(), 1), "120/1000 ━───────── 12%");
  const std::string wide = progress_bar(sample(), 200);
  for (const char* word : {"loss 2.3451", "lr 3.00e-04", "peak 1.2 GiB"}) EXPECT_NE(wide.find(word), wide.npos) << word;
  const std::string medium = progress_bar(sample(), 100);
  EXPECT_EQ(medium.find("peak"), medium.npos);
  EXPECT_NE(medium.find("tokens/s"), medium.npos);
}

TEST(Progress, BarOfNothingAndOfEverything) {
  Progress progress;
  EXPECT_EQ(progress_bar(progress, 30), "0/0 ─────────────────────── 0%");
  progress.step = progress.steps = 7;
  EXPECT_EQ(progress_bar(progress, 20), "7/7 ━━━━━━━━━━━ 100%");
}

TEST(Progress, Magnitudes) {
  Progress progress;
  progress.loss = 1234567;
  progress.grad_norm = 0.00012;
  progress.tokens_per_second = 2345678;
  EXPECT_EQ(progress_line(progress), "step 0/0  loss 1.23e+06  grad norm 1.20e-04  2.35M tokens/s");
  progress = {};
  progress.loss = std::numeric_limits<double>::infinity();
  progress.tokens_per_second = 950;
  EXPECT_EQ(progress_line(progress), "step 0/0  loss inf  950 tokens/s");
}

TEST(Progress, Durations) {
  EXPECT_EQ(duration_text(0), "0s");
  EXPECT_EQ(duration_text(59.6), "1m00s");
  EXPECT_EQ(duration_text(192), "3m12s");
  EXPECT_EQ(duration_text(7500), "2h05m");
  EXPECT_EQ(duration_text(274000), "3d04h");
}

}  // namespace
}  // namespace braid::report::progress_test
