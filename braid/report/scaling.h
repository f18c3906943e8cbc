// The speed of training by number of ranks: points, their table and their picture.
#pragma once

#include <string>
#include <vector>

namespace braid::report {

struct ScalingPoint {
  int ranks = 1;
  double step_seconds = 0;
  double tokens_per_second = 0;
};

// Strong: the batch of a step stays the same. Weak: each rank's share of it does.
struct Scaling {
  std::vector<ScalingPoint> strong, weak;  // ascending ranks, the first point is what others are held against
};

// Tokens per second over those of the first point.
double speed_up(const std::vector<ScalingPoint>& points, size_t point);
// The speed-up over that of as many ranks at the first point's speed each.
double efficiency(const std::vector<ScalingPoint>& points, size_t point);

// Lines with one row per point, strong before weak.
std::string scaling_table(const Scaling& scaling);
// A self-contained SVG: speed-up against ranks, with the ideal line.
std::string scaling_svg(const Scaling& scaling);

}  // namespace braid::report
