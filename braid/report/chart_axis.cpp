// Axes with ticks at round numbers, and the decimation and smoothing of series.
#include "braid/report/chart_axis.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"
#include "braid/report/markup.h"

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
  std::vector<double> sums{0};  // sums[i] is the sum of the first i values
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

namespace {

// Returns a tick's value with enough decimals to distinguish neighbours: two for steps of 0.05.
std::string label(double value, double step) {
  const double size = std::max(std::abs(value), step);
  if (value == 0) return "0";
  if (step < 1e-3) {
    const double power = std::floor(std::log10(size) + 1e-9);
    const int digits = std::clamp(static_cast<int>(power - std::floor(std::log10(step) + 1e-9)), 0, 9);
    return cat(fixed(value / std::pow(10, power), digits), "e", static_cast<int>(power));
  }
  for (const auto& [unit, name] : {std::pair{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}}) {
    if (size < (unit == 1e3 ? 1e4 : unit)) continue;
    return coordinate(value / unit) + name;
  }
  return fixed(value, std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9))));
}

}  // namespace

double round_step(double rough) {
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

ChartAxis::ChartAxis(Range range, Scale scale, int num_ticks) : range_(range), scale_(scale) {
  const double width = range.high - range.low;
  if (scale == Scale::Log) {
    if (range.high < range.low * 1.5) range_ = {range.low / 1.3, range.high * 1.3};
    add_log_ticks(num_ticks);
  } else {
    if (width <= 1e-9 * std::abs(range.high)) {
      const double margin = range.high == 0 ? 1 : 0.1 * std::abs(range.high);
      range_ = {range.low - margin, range.high + margin};
    }
    add_linear_ticks(num_ticks);
  }
}

double ChartAxis::place(double value) const {
  double share = 0;
  if (scale_ == Scale::Log) {
    if (value > 0) share = std::log(value / range_.low) / std::log(range_.high / range_.low);
  } else {
    share = (value - range_.low) / (range_.high - range_.low);
  }
  return std::clamp(share, 0.0, 1.0);
}

void ChartAxis::add_linear_ticks(int num_ticks) {
  const double step = round_step((range_.high - range_.low) / num_ticks);
  for (double i = std::ceil(range_.low / step - 1e-9); i * step <= range_.high + 1e-9 * step; ++i) {
    ticks_.push_back({place(i * step), label(i * step, step)});
  }
}

// Adds ticks at 1, 2 and 5 times every power of ten. If that is too many, adds ticks only at powers, or at every
// second, third, ... power.
void ChartAxis::add_log_ticks(int num_ticks) {
  const double powers = std::log10(range_.high / range_.low);
  const bool dense = 3 * powers <= num_ticks + 2;
  const int every = std::max(1, static_cast<int>(std::ceil(powers / num_ticks)));
  for (int power = static_cast<int>(std::floor(std::log10(range_.low))); std::pow(10, power) <= range_.high; ++power) {
    for (const int factor : {1, 2, 5}) {
      const double value = factor * std::pow(10, power);
      if (value < range_.low || value > range_.high) continue;
      if (factor > 1 ? !dense : power % every != 0) continue;
      ticks_.push_back({place(value), short_number(value)});
    }
  }
}

}  // namespace braid::report
