// The axis of a chart: its range, its ticks and their labels. It does not draw.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace braid::report {

// A point of a curve: a quantity at a step of a run.
struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};
using Series = std::vector<Point>;  // x ascends; y is finite

// Returns at most `most` (>= 4) points that look like the whole series: the lowest and the highest of each group of
// neighbours, in their order. First and last points stay. A series that is short enough is returned unchanged.
Series decimated(const Series& series, size_t most);

// Returns each point with the mean of its neighbours, up to `half_width` on each side. Near the beginning, where a loss
// falls steeply, both sides have as many neighbours as there are before the point. Near the end, the side after the
// point has all that are left.
Series smoothed(const Series& series, size_t half_width);

// Returns the median of the last `count` values, or of all if there are fewer; NaN for an empty series.
double late_median(const Series& series, size_t count);

enum class Scale { Linear, Log };

// Returns 1, 2 or 5 times a power of ten, at least `rough` > 0.
double round_step(double rough);

class ChartAxis {
 public:
  // The range of a chart's values. REQUIRES: `low` <= `high`, both are finite, and both are positive on a Log scale.
  struct Range {
    double low = 0, high = 1;
  };
  struct Tick {
    double place = 0;  // position from 0 at the low end to 1 at the high end
    std::string label;
  };

  // Makes about `num_ticks` ticks inside `range`. An empty range is widened.
  ChartAxis(Range range, Scale scale, int num_ticks);

  double place(double value) const;  // returns 0 at the low end, 1 at the high end; clamped
  const std::vector<Tick>& ticks() const { return ticks_; }
  Range range() const { return range_; }
  Scale scale() const { return scale_; }

 private:
  void add_linear_ticks(int num_ticks);
  void add_log_ticks(int num_ticks);

  Range range_;
  Scale scale_;
  std::vector<Tick> ticks_;
};

}  // namespace braid::report
