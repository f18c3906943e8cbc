// The axis of a chart: its range, its ticks and what is written at them. It does not draw.
#pragma once

#include <string>
#include <vector>

namespace braid::report {

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
