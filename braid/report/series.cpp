// Thinning and smoothing, both linear in the number of points.
#include "braid/report/series.h"

#include <algorithm>
#include <limits>

namespace braid::report {

Series decimated(const Series& series, size_t most) {
  if (series.size() <= most) return series;
  const auto lower = [](const Point& a, const Point& b) { return a.y < b.y; };
  const size_t num_stretches = (most - 2) / 2;
  const size_t inner = series.size() - 2;
  Series kept{series.front()};
  for (size_t i = 0; i < num_stretches; ++i) {
    const auto begin = series.begin() + 1 + static_cast<std::ptrdiff_t>(i * inner / num_stretches);
    const auto end = series.begin() + 1 + static_cast<std::ptrdiff_t>((i + 1) * inner / num_stretches);
    const auto [low, high] = std::minmax_element(begin, end, lower);
    kept.push_back(std::min(low, high) == low ? *low : *high);
    if (low != high) kept.push_back(std::min(low, high) == low ? *high : *low);
  }
  kept.push_back(series.back());
  return kept;
}

Series smoothed(const Series& series, size_t half_width) {
  std::vector<double> sums{0};  // sums[i]: of the first i values
  for (const Point& point : series) sums.push_back(sums.back() + point.y);
  Series means;
  for (size_t i = 0; i < series.size(); ++i) {
    const size_t before = std::min(half_width, i), after = std::min(before, series.size() - 1 - i);
    const double sum = sums[i + after + 1] - sums[i - before];
    means.push_back({series[i].x, sum / static_cast<double>(before + 1 + after)});
  }
  return means;
}

double late_median(const Series& series, size_t count) {
  if (series.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;
  for (size_t i = series.size() - std::min(count, series.size()); i < series.size(); ++i) values.push_back(series[i].y);
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace braid::report
