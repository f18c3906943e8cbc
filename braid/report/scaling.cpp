// The table and the picture of a scaling measurement: two curves and a diagonal.
#include "braid/report/scaling.h"

#include <algorithm>
#include <cstdio>

#include "braid/base/text.h"
#include "braid/report/chart_axis.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

constexpr double kLeft = 56, kTop = 24, kPlotWidth = 460, kPlotHeight = 320, kPlotMargin = 48;

std::string formatted(const char* format, double value) {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string padded(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

void add_rows(std::string& table, const char* kind, const std::vector<ScalingPoint>& points) {
  for (size_t i = 0; i < points.size(); ++i) {
    table +=
        cat(kind, padded(cat(points[i].ranks), 8), padded(formatted("%.4f", points[i].step_seconds), 10),
            padded(short_number(points[i].tokens_per_second), 11), padded(formatted("%.2f", speed_up(points, i)), 10),
            padded(formatted("%.0f %%", 100 * efficiency(points, i)), 12), "\n");
  }
}

// The picture of speed-up over ranks. Both axes start at 0.
class ScalingPicture {
 public:
  explicit ScalingPicture(const Scaling& scaling) : axis_({0, highest(scaling)}, Scale::Linear, 6) {
    svg_ =
        cat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", coordinate(kLeft + kPlotWidth + kPlotMargin),
            "\" height=\"", coordinate(kTop + kPlotHeight + kPlotMargin),
            "\" font-family=\"sans-serif\" font-size=\"13\"><rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
    for (const ChartAxis::Tick& tick : axis_.ticks()) {
      const double x = kLeft + tick.place * kPlotWidth, y = kTop + (1 - tick.place) * kPlotHeight;
      text(x, kTop + kPlotHeight + 18, "middle", tick.label);
      text(kLeft - 8, y + 4, "end", tick.label);
      svg_ += cat("<path d=\"M", coordinate(kLeft), " ", coordinate(y), "h", coordinate(kPlotWidth),
                  "\" stroke=\"#e4e7eb\"/>\n");
    }
    text(kLeft + kPlotWidth / 2, kTop + kPlotHeight + 38, "middle", "ranks");
    text(kLeft, kTop - 8, "start", "speed-up");
  }

  void curve(const std::string& name, const std::vector<ScalingPoint>& points, const char* colour, int row) {
    std::string path, dots;
    for (size_t i = 0; i < points.size(); ++i) {
      const double x = kLeft + axis_.place(points[i].ranks) * kPlotWidth;
      const double y = kTop + (1 - axis_.place(speed_up(points, i) * points.front().ranks)) * kPlotHeight;
      path += cat(i == 0 ? "M" : "L", coordinate(x), " ", coordinate(y));
      dots += cat("<circle cx=\"", coordinate(x), "\" cy=\"", coordinate(y), "\" r=\"4\" fill=\"", colour, "\"/>");
    }
    svg_ += cat("<path d=\"", path, "\" fill=\"none\" stroke=\"", colour, "\" stroke-width=\"2\"/>", dots, "\n");
    svg_ += cat("<text x=\"", coordinate(kLeft + 14), "\" y=\"", coordinate(kTop + 20 + 18 * row), "\" fill=\"", colour,
                "\">", escaped(name), "</text>\n");
  }

  void ideal() {
    svg_ +=
        cat("<path d=\"M", coordinate(kLeft), " ", coordinate(kTop + kPlotHeight), "L", coordinate(kLeft + kPlotWidth),
            " ", coordinate(kTop), "\" stroke=\"#9aa5b1\" stroke-dasharray=\"5 4\"/>\n");
  }

  std::string finished() const { return svg_ + "</svg>\n"; }

 private:
  static double highest(const Scaling& scaling) {
    double most = 1;
    for (const auto* points : {&scaling.strong, &scaling.weak}) {
      for (size_t i = 0; i < points->size(); ++i) {
        most = std::max({most, double((*points)[i].ranks), speed_up(*points, i) * points->front().ranks});
      }
    }
    return most;
  }
  void text(double x, double y, const char* anchor, const std::string& content) {
    svg_ += cat("<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" text-anchor=\"", anchor,
                "\" fill=\"#1f2933\">", escaped(content), "</text>\n");
  }

  ChartAxis axis_;
  std::string svg_;
};

}  // namespace

double speed_up(const std::vector<ScalingPoint>& points, size_t point) {
  return points[point].tokens_per_second / points.front().tokens_per_second;
}

double efficiency(const std::vector<ScalingPoint>& points, size_t point) {
  return speed_up(points, point) * points.front().ranks / points[point].ranks;
}

std::string scaling_table(const Scaling& scaling) {
  std::string table = "scaling   ranks    s/step   tokens/s  speed-up  efficiency\n";
  add_rows(table, "strong ", scaling.strong);
  add_rows(table, "weak   ", scaling.weak);
  return table;
}

std::string scaling_svg(const Scaling& scaling) {
  ScalingPicture picture(scaling);
  picture.ideal();
  picture.curve("strong", scaling.strong, "#1f2933", 0);
  picture.curve("weak", scaling.weak, "#c2410c", 1);
  return picture.finished();
}

}  // namespace braid::report
