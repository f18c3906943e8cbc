// Charts as one SVG inside another. The outer SVG is in screen pixels and places text by percent. The inner SVG
// stretches paths of a 1000 x 1000 plane over it.
#include "braid/report/chart.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/base/text.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

constexpr double kPlane = 1000;
constexpr double kMargin = 0.05;                     // fraction of the range left free above and below the values
constexpr double kSqueezed = 12;                     // an axis is logarithmic if its maximum exceeds this many medians
constexpr double kLowest = 0.005, kHighest = 0.995;  // quantiles of a faint curve that the axis must cover
constexpr int kTicksX = 6, kTicksY = 5;

const char* style(Stroke stroke) {
  switch (stroke) {
    case Stroke::Faint:
      return "faint";
    case Stroke::Main:
      return "main";
    case Stroke::Second:
      return "second";
  }
  return "";
}

// Returns all values in ascending order, without the outermost values of faint curves.
std::vector<double> values_of(const Chart& chart) {
  std::vector<double> all;
  for (const Curve& curve : chart.curves) {
    std::vector<double> own;
    for (const Point& point : curve.points) own.push_back(point.y);
    std::sort(own.begin(), own.end());
    if (curve.stroke == Stroke::Faint && own.size() > 2) {
      const auto at = [&](double share) {
        return static_cast<std::ptrdiff_t>(share * static_cast<double>(own.size() - 1));
      };
      own = {own.begin() + at(kLowest), own.begin() + at(kHighest) + 1};
    }
    all.insert(all.end(), own.begin(), own.end());
  }
  for (const Level& level : chart.levels) all.push_back(level.value);
  std::sort(all.begin(), all.end());
  return all;
}

ChartAxis value_axis(const Chart& chart) {
  const std::vector<double> values = values_of(chart);
  ChartAxis::Range range{values.front(), values.back()};
  const double median = values[values.size() / 2];
  if (chart.base == Base::Zero) {
    return ChartAxis({std::min(0.0, range.low), range.high * (1 + kMargin)}, Scale::Linear, kTicksY);
  }
  if (range.low > 0 && range.high > kSqueezed * median) return ChartAxis(range, Scale::Log, kTicksY);
  const double margin = kMargin * (range.high - range.low);
  return ChartAxis({range.low >= 0 ? std::max(0.0, range.low - margin) : range.low - margin, range.high + margin},
                   Scale::Linear, kTicksY);
}

ChartAxis step_axis(const Chart& chart) {
  ChartAxis::Range range{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  for (const Curve& curve : chart.curves) {
    if (curve.points.empty()) continue;
    range.low = std::min(range.low, curve.points.front().x);
    range.high = std::max(range.high, curve.points.back().x);
  }
  return ChartAxis(range, Scale::Linear, kTicksX);
}

class Figure {
 public:
  explicit Figure(const Chart& chart) : chart_(chart), x_(step_axis(chart)), y_(value_axis(chart)) {}

  std::string text() const {
    std::string all = cat("<figure class=\"chart", chart_.width == ChartWidth::Whole ? " whole" : "",
                          "\">\n<figcaption><h3>", escaped(chart_.title), "</h3><span class=\"unit\">",
                          escaped(chart_.unit), "</span>", legend(), "</figcaption>\n");
    all += cat("<div class=\"plot\" data-x=\"", exact(x_.range().low), " ", exact(x_.range().high), "\" data-y=\"",
               exact(y_.range().low), " ", exact(y_.range().high), "\" data-scale=\"",
               y_.scale() == Scale::Log ? "log" : "linear", "\">");
    all += cat("<svg class=\"frame\" role=\"img\" aria-label=\"", escaped(chart_.title), " over the steps\">\n");
    return all + frame() + lines() + curves() + dots() +
           "<line class=\"cross\" y1=\"0\" y2=\"100%\"/></svg></div></figure>\n";
  }

 private:
  std::string legend() const {
    if (chart_.curves.size() + chart_.levels.size() < 2) return "";
    std::string all = "<span class=\"legend\">";
    for (const Curve& curve : chart_.curves) {
      if (curve.points.empty()) continue;
      all += cat("<span><i class=\"", style(curve.stroke), "\"></i>", escaped(curve.name), "</span>");
    }
    for (const Level& level : chart_.levels)
      all += cat("<span><i class=\"level\"></i>", escaped(level.name), "</span>");
    return all + "</span>";
  }

  std::string frame() const {
    std::string all;
    for (const auto& tick : y_.ticks()) {
      const std::string y = percent(1 - tick.place);
      all += cat("<line class=\"grid\" x2=\"100%\" y1=\"", y, "\" y2=\"", y, "\"/><text class=\"y\" x=\"-10\" y=\"", y,
                 "\" dy=\".33em\">", tick.label, "</text>\n");
    }
    for (const auto& tick : x_.ticks()) {
      all += cat("<text class=\"x\" x=\"", percent(tick.place), "\" y=\"100%\" dy=\"20\">", tick.label, "</text>");
    }
    return all + "<line class=\"axis\" x2=\"100%\" y1=\"100%\" y2=\"100%\"/>\n";
  }

  std::string lines() const {
    std::string all;
    for (const double step : chart_.breaks) {
      if (step <= x_.range().low || step >= x_.range().high) continue;
      const std::string x = percent(x_.place(step));
      all += cat("<line class=\"break\" x1=\"", x, "\" x2=\"", x, "\" y2=\"100%\"><title>started again after step ",
                 step, "</title></line>\n");
    }
    for (const Level& level : chart_.levels) {
      const std::string y = percent(1 - y_.place(level.value));
      all += cat("<line class=\"level\" x2=\"100%\" y1=\"", y, "\" y2=\"", y, "\"/>\n");
    }
    return all;
  }

  std::string curves() const {
    std::string all = "<svg viewBox=\"0 0 1000 1000\" preserveAspectRatio=\"none\" width=\"100%\" height=\"100%\">";
    for (const Curve& curve : chart_.curves) {
      if (curve.points.empty()) continue;
      std::string path;
      for (const Point& point : decimated(curve.points, kMostPoints)) {
        path += cat(path.empty() ? "M" : "L", coordinate(kPlane * x_.place(point.x)), " ",
                    coordinate(kPlane * (1 - y_.place(point.y))));
      }
      all +=
          cat("\n<path class=\"", style(curve.stroke), "\" data-name=\"", escaped(curve.name), "\" d=\"", path, "\"/>");
    }
    return all + "</svg>\n";
  }

  std::string dots() const {
    std::string all;
    for (const Curve& curve : chart_.curves) {
      if (curve.marks == Marks::None && curve.points.size() > 1) continue;  // one point makes no visible line
      for (const Point& point : decimated(curve.points, kMostPoints)) {
        all += cat("<circle class=\"", style(curve.stroke), "\" r=\"3.5\" cx=\"", percent(x_.place(point.x)),
                   "\" cy=\"", percent(1 - y_.place(point.y)), "\"/>\n");
      }
    }
    return all;
  }

  const Chart& chart_;
  const ChartAxis x_, y_;
};

}  // namespace

std::string chart_figure(const Chart& chart) {
  const bool any =
      std::any_of(chart.curves.begin(), chart.curves.end(), [](const Curve& c) { return !c.points.empty(); });
  return any ? Figure(chart).text() : "";
}

}  // namespace braid::report
