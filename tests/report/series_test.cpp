// Thinning keeps what the eye would see; smoothing keeps the level.
#include <gtest/gtest.h>

#include <cmath>

#include "braid/report/chart_axis.h"

namespace braid::report::series_test {
namespace {

Series wave(size_t count) {
  Series series;
  for (size_t i = 0; i < count; ++i)
    series.push_back({1.0 * static_cast<double>(i), std::sin(0.01 * static_cast<double>(i))});
  return series;
}

TEST(Series, ShortOnesStay) { EXPECT_EQ(decimated(wave(100), 100), wave(100)); }

TEST(Series, SpikesAndEndsSurvive) {
  Series series = wave(1000000);
  series[123457].y = 50;
  series[777777].y = -50;
  const Series thin = decimated(series, 2000);
  EXPECT_LE(thin.size(), 2000u);
  EXPECT_GE(thin.size(), 1500u);
  EXPECT_EQ(thin.front(), series.front());
  EXPECT_EQ(thin.back(), series.back());
  EXPECT_EQ(std::count(thin.begin(), thin.end(), series[123457]), 1);
  EXPECT_EQ(std::count(thin.begin(), thin.end(), series[777777]), 1);
  for (size_t i = 1; i < thin.size(); ++i) ASSERT_LT(thin[i - 1].x, thin[i].x);
}

TEST(Series, EveryLimitIsKept) {
  for (size_t most = 4; most < 40; ++most) EXPECT_LE(decimated(wave(41), most).size(), most);
}

TEST(Series, SmoothingByHand) {
  const Series series{{1, 8}, {2, 2}, {3, 5}, {4, 2}, {5, 11}};
  EXPECT_EQ(smoothed(series, 1), (Series{{1, 8}, {2, 5}, {3, 3}, {4, 6}, {5, 6.5}}));
  EXPECT_EQ(smoothed(series, 2), (Series{{1, 8}, {2, 5}, {3, 5.6}, {4, 5}, {5, 6}}));
  EXPECT_EQ(smoothed(series, 0), series);
  EXPECT_TRUE(smoothed({}, 3).empty());
}

TEST(Series, MedianOfTheEnd) {
  const Series series{{1, 100}, {2, 1}, {3, 3}, {4, 2}};
  EXPECT_EQ(late_median(series, 3), 2);
  EXPECT_EQ(late_median(series, 50), 3);
  EXPECT_TRUE(std::isnan(late_median({}, 3)));
}

}  // namespace
}  // namespace braid::report::series_test
