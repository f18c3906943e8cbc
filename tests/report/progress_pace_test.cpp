// Which steps are shown, on a clock of the test's own.
#include <gtest/gtest.h>

#include <vector>

#include "braid/report/progress.h"

namespace braid::report::progress_pace_test {
namespace {

// Returns the shown ones of the steps first .. last, each of which takes `seconds`.
std::vector<int64_t> shown(ProgressPace pace, int64_t first, int64_t last, double seconds) {
  std::vector<int64_t> steps;
  for (int64_t step = first; step <= last; ++step) {
    if (pace.shows(step, last, static_cast<double>(step) * seconds)) steps.push_back(step);
  }
  return steps;
}

TEST(ProgressPace, QuickStepsAreShownByTheirNumber) {
  EXPECT_EQ(shown({25, 30}, 1, 110, 0.001), (std::vector<int64_t>{1, 25, 50, 75, 100, 110}));
  EXPECT_EQ(shown({25, 30}, 61, 110, 0.001), (std::vector<int64_t>{61, 75, 100, 110})) << "a run that goes on";
}

TEST(ProgressPace, SlowStepsAreShownByTheClock) {
  EXPECT_EQ(shown({1000, 30}, 1, 10, 8), (std::vector<int64_t>{1, 5, 9, 10}));
  EXPECT_EQ(shown({1000, 30}, 1, 4, 60), (std::vector<int64_t>{1, 2, 3, 4}));
}

TEST(ProgressPace, TheClockBeginsAnewWithEachThatIsShown) {
  EXPECT_EQ(shown({6, 30}, 1, 13, 8), (std::vector<int64_t>{1, 5, 6, 10, 12, 13}));
}

}  // namespace
}  // namespace braid::report::progress_pace_test
