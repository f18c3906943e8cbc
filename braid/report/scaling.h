// The speed of training by number of ranks: measured points, their table and their chart.
#pragma once

#include <string>
#include <vector>

namespace braid::report {

struct ScalingPoint {
  int ranks = 1;
  double step_seconds = 0;
  double tokens_per_second = 0;
};

// The points of two scaling experiments. Strong: the batch of a step is constant. Weak: the batch per rank is constant.
struct Scaling {
  std::vector<ScalingPoint> strong, weak;  // points in ascending order of ranks; the first point is the reference
};

// Returns the tokens per second of a point divided by those of the first point.
double speed_up(const std::vector<ScalingPoint>& points, size_t point);
// Returns the speed-up of a point divided by the ideal one, which is its number of ranks over that of the first point.
double efficiency(const std::vector<ScalingPoint>& points, size_t point);

// Returns lines with one row per point, strong before weak.
std::string scaling_table(const Scaling& scaling);
// Returns a self-contained SVG: speed-up against ranks, with the ideal line.
std::string scaling_svg(const Scaling& scaling);

}  // namespace braid::report
