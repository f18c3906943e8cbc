// A quantity over the steps of a run, made fit to be drawn.
#pragma once

#include <cstddef>
#include <vector>

namespace braid::report {

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

}  // namespace braid::report
