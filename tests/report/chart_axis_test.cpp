// Ticks are round, inside, and told apart.
#include "braid/report/chart_axis.h"

#include <gtest/gtest.h>

#include <set>

namespace braid::report::chart_axis_test {
namespace {

std::vector<std::string> labels(const ChartAxis& axis) {
  std::vector<std::string> all;
  for (const auto& tick : axis.ticks()) all.push_back(tick.label);
  return all;
}

using Labels = std::vector<std::string>;

TEST(ChartAxis, RoundSteps) {
  EXPECT_EQ(round_step(1), 1);
  EXPECT_EQ(round_step(1.01), 2);
  EXPECT_EQ(round_step(0.021), 0.05);
  EXPECT_EQ(round_step(51), 100);
}

TEST(ChartAxis, LinearTicks) {
  const ChartAxis axis({1.9, 5.4}, Scale::Linear, 5);
  EXPECT_EQ(labels(axis), (Labels{"2", "3", "4", "5"}));
  EXPECT_NEAR(axis.ticks()[0].place, 0.1 / 3.5, 1e-12);
  EXPECT_EQ(labels(ChartAxis({0, 2345}, Scale::Linear, 5)), (Labels{"0", "500", "1000", "1500", "2000"}));
  EXPECT_EQ(labels(ChartAxis({0, 52000}, Scale::Linear, 5)), (Labels{"0", "20k", "40k"}));
  EXPECT_EQ(labels(ChartAxis({0, 1.5e-3}, Scale::Linear, 5)), (Labels{"0", "5e-4", "1.0e-3", "1.5e-3"}));
  EXPECT_EQ(labels(ChartAxis({2.31, 2.42}, Scale::Linear, 5)), (Labels{"2.35", "2.40"}));
  EXPECT_EQ(labels(ChartAxis({-0.1, 0.1}, Scale::Linear, 4)), (Labels{"-0.10", "-0.05", "0", "0.05", "0.10"}));
}

TEST(ChartAxis, LogTicks) {
  EXPECT_EQ(labels(ChartAxis({0.9, 25}, Scale::Log, 5)), (Labels{"1", "2", "5", "10", "20"}));
  const ChartAxis wide({1e-9, 1e9}, Scale::Log, 5);
  EXPECT_LE(wide.ticks().size(), 7u);
  EXPECT_NEAR(wide.place(1), 0.5, 1e-12);
  EXPECT_EQ(wide.place(-3), 0);
}

TEST(ChartAxis, AnEmptyRangeIsWidened) {
  for (const double value : {0.0, 3.0, -2.0, 1e-12, 1e12}) {
    const ChartAxis axis({value, value}, Scale::Linear, 5);
    EXPECT_FALSE(axis.ticks().empty()) << value;
    EXPECT_NEAR(axis.place(value), 0.5, 1e-9) << value;
  }
}

TEST(ChartAxis, LabelsAreAllDifferentAndPlacesAscend) {
  for (double high = 1.1e-7; high < 1e14; high *= 3.7) {
    for (const double low : {0.0, high / 2, -high}) {
      const ChartAxis axis({low, high}, Scale::Linear, 5);
      const Labels all = labels(axis);
      EXPECT_EQ(std::set<std::string>(all.begin(), all.end()).size(), all.size()) << low << " " << high;
      EXPECT_GE(all.size(), 2u) << low << " " << high;
      EXPECT_LE(all.size(), 7u) << low << " " << high;
    }
  }
}

}  // namespace
}  // namespace braid::report::chart_axis_test
