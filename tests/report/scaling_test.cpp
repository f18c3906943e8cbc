// Speed-up, efficiency, the table and the picture's points.
#include "braid/report/scaling.h"

#include <gtest/gtest.h>

namespace braid::report::scaling_test {
namespace {

const Scaling kScaling = {{{1, 2.0, 100}, {2, 1.25, 160}, {4, 1.0, 200}}, {{1, 2.0, 100}, {2, 2.0, 200}}};

TEST(Scaling, IsAgainstTheFirstPoint) {
  EXPECT_DOUBLE_EQ(speed_up(kScaling.strong, 0), 1);
  EXPECT_DOUBLE_EQ(speed_up(kScaling.strong, 2), 2);
  EXPECT_DOUBLE_EQ(efficiency(kScaling.strong, 1), 0.8);
  EXPECT_DOUBLE_EQ(efficiency(kScaling.strong, 2), 0.5);
  const std::vector<ScalingPoint> from_two = {{2, 1, 100}, {8, 1, 300}};
  EXPECT_DOUBLE_EQ(efficiency(from_two, 1), 0.75);
}

TEST(Scaling, Table) {
  EXPECT_EQ(scaling_table(kScaling),
            "scaling   ranks    s/step   tokens/s  speed-up  efficiency\n"
            "strong        1    2.0000        100      1.00       100 %\n"
            "strong        2    1.2500        160      1.60        80 %\n"
            "strong        4    1.0000        200      2.00        50 %\n"
            "weak          1    2.0000        100      1.00       100 %\n"
            "weak          2    2.0000        200      2.00       100 %\n");
}

TEST(Scaling, PictureHasAPointForEachMeasurement) {
  const std::string svg = scaling_svg(kScaling);
  size_t circles = 0;
  for (size_t at = svg.find("<circle"); at != svg.npos; at = svg.find("<circle", at + 1)) ++circles;
  EXPECT_EQ(circles, 5u);
  EXPECT_NE(svg.find(">strong<"), svg.npos);
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
  // Weak scaling is ideal here: its points lie on the diagonal, at a quarter and at half of the plot.
  EXPECT_NE(svg.find("cx=\"171\" cy=\"264\""), svg.npos);
  EXPECT_NE(svg.find("cx=\"286\" cy=\"184\""), svg.npos);
}

}  // namespace
}  // namespace braid::report::scaling_test
