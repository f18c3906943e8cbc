// The axis of a chart: its range, its ticks and what is written at them. It does not draw.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace braid::report {

// A quantity over the steps of a run, made fit to be drawn.
struct Point {
  double x = 0, y = 0;
  bool operator==(const Point&) const = default;
};
using Series = std::vector<Point>;  // x ascends; y is finite

// At most `most` (>= 4) points that look like all: of each stretch of neighbours its lowest and its highest, in their
// order. First and last stay. A series that is short enough stays as it is.
Series decimated(const Series& series, size_t most);

// Each point with the mean of its neighbours, `half_width` on each side. At the begin, where a loss falls steeply, as
// many on both sides as there are before the point; at the end, as many after it as there are.
Series smoothed(const Series& series, size_t half_width);

// The value in the middle of the last `count` values, of all when there are fewer; NaN of none.
double late_median(const Series& series, size_t count);

enum class Scale { Linear, Log };

// 1, 2 or 5 times a power of ten, at least `rough` > 0.
double round_step(double rough);

class ChartAxis {
 public:
  // The range of a chart's values; `low` <= `high`, both finite, and positive on a Log scale.
  struct Range {
    double low = 0, high = 1;
  };
  struct Tick {
    double place = 0;  // from 0 at the low end to 1 at the high end
    std::string label;
  };

  // About `num_ticks` ticks inside `range`, which is widened when it is empty.
  ChartAxis(Range range, Scale scale, int num_ticks);

  double place(double value) const;  // 0 at the low end, 1 at the high end; clamped
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
