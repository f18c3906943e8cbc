// Draws spans as SVG by hand. No fonts, scripts or styles from outside.
#include "braid/report/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "braid/base/text.h"

namespace braid {
namespace {

constexpr double kWidth = 1200;
constexpr double kLeft = 84;  // names of ranks
constexpr double kRight = 28;
constexpr double kPlot = kWidth - kLeft - kRight;
constexpr double kTitle = 46;   // above a panel
constexpr double kAxis = 46;    // below it
constexpr double kLegend = 34;  // at the foot
constexpr double kTallestRow = 32;
constexpr double kRowsHeight = 960;  // rows shrink to fit this, down to kLowestRow
constexpr double kLowestRow = 4;
constexpr double kLabelledRow = 14;  // rows below this height carry no text
constexpr double kNarrowest = 0.35;  // pixels; narrower boxes are merged with their neighbours
constexpr double kSmallBox = 8;      // pixels; narrower boxes carry no number
constexpr double kDigit = 6.4;       // width of a digit at the font size of boxes

struct Kind {
  const char* style;  // class of the boxes
  const char* name;   // in the legend
};

Kind kind(Op op) {
  switch (op) {
    case Op::Forward:
      return {"f", "forward"};
    case Op::FullBackward:
      return {"b", "backward"};
    case Op::InputGrad:
      return {"i", "input gradient"};
    case Op::WeightGrad:
      return {"w", "weight gradient"};
    case Op::ReduceGrad:
      return {"r", "gradient reduction"};
    default:
      return {"t", "send, receive"};
  }
}

constexpr char kStyle[] = R"(<style>
text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}
.title{font-size:17px;font-weight:600}.detail{font-size:14px;fill:#52606d}
.rank{font-size:13px;text-anchor:end;fill:#3e4c59}.tick{font-size:12px;text-anchor:middle;fill:#616e7c}
.legend{font-size:13px;fill:#3e4c59}.n{font-size:11px;text-anchor:middle;fill:#fff}.d{fill:#1f2933}
.lane{fill:#e6eaf0}.grid{stroke:#d3dae2;stroke-width:1}.axis{stroke:#9aa5b1;stroke-width:1}
.f{fill:#3d6fb4}.b{fill:#2f8f6b}.i{fill:#86cbb0}.w{fill:#efbd6b}.t{fill:#c2528b}.r{fill:#7a5fb0}
</style>
)";

std::string px(double value) {
  std::string digits = fixed(value, 2);
  while (digits.back() == '0') digits.pop_back();
  if (digits.back() == '.') digits.pop_back();
  return digits;
}

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    if (c == '&') {
      safe += "&amp;";
    } else if (c == '<') {
      safe += "&lt;";
    } else if (c == '>') {
      safe += "&gt;";
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      safe += c;
    }
  }
  return safe;
}

double first_begin(const Timeline& timeline) {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& spans : timeline.ranks) {
    for (const auto& span : spans) first = std::min(first, span.begin);
  }
  return std::isfinite(first) ? first : 0;
}

// 1, 2 or 5 times a power of ten, so that about ten ticks fit.
double tick_step(double range) {
  const double rough = range / 10;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

class Picture {
 public:
  Picture(const std::vector<NamedTimeline>& timelines, TimeUnit unit) : timelines_(timelines) {
    double longest = 0;
    for (const auto& named : timelines) {
      longest = std::max(longest, named.timeline.makespan());
      for (const auto& spans : named.timeline.ranks) {
        thin_lines_ |= std::any_of(spans.begin(), spans.end(), [](const Span& s) { return !computes(s.action.op); });
      }
    }
    longest_ = longest > 0 ? longest : 1;
    if (unit == TimeUnit::Units) {
      unit_name_ = "units";
    } else if (longest_ >= 1) {
      unit_name_ = "s";
    } else if (longest_ >= 1e-3) {
      unit_name_ = "ms";
      per_unit_ = 1e-3;
    } else {
      unit_name_ = "\u00b5s";
      per_unit_ = 1e-6;
    }
  }

  std::string text() {
    double y = 12;
    for (const auto& named : timelines_) y = panel(named, y);
    legend(y + 2);
    const double height = y + kLegend;
    std::string head =
        cat(R"(<svg xmlns="http://www.w3.org/2000/svg" width=")", px(kWidth), R"(" height=")", px(height));
    head += cat(R"(" viewBox="0 0 )", px(kWidth), " ", px(height), R"(" role="img">)", "\n");
    head += cat(kStyle, R"(<rect width="100%" height="100%" fill="#ffffff"/>)", "\n");
    return head + body_ + "</svg>\n";
  }

 private:
  double x_of(double time) const { return kLeft + time / longest_ * kPlot; }

  void write(const char* style, double x, double y, const std::string& content) {
    body_ += cat("<text class=\"", style, "\" x=\"", px(x), "\" y=\"", px(y), "\">", content, "</text>\n");
  }

  void box(const char* style, double x, double y, double width, double height) {
    body_ += cat("<rect class=\"", style, "\" x=\"", px(x), "\" y=\"", px(y), "\" width=\"", px(width), "\" height=\"",
                 px(height), height >= kLabelledRow ? "\" rx=\"2\"/>" : "\"/>");
  }

  void line(const char* style, double x, double top, double bottom) {
    body_ += cat("<path class=\"", style, "\" d=\"M", px(x), " ", px(top), "V", px(bottom), "\"/>\n");
  }

  double panel(const NamedTimeline& named, double top) {
    const Timeline& timeline = named.timeline;
    const int ranks = static_cast<int>(timeline.ranks.size());
    const double pitch = std::clamp(kRowsHeight / std::max(1, ranks), kLowestRow, kTallestRow);
    const std::string facts = cat("bubble ", fixed(100 * timeline.bubble_fraction(), 1), "%, makespan ",
                                  amount(timeline.makespan()), " ", unit_name_);
    body_ += cat("<text class=\"title\" x=\"", px(kLeft), "\" y=\"", px(top + 26), "\">", escaped(named.name),
                 "<tspan class=\"detail\" font-weight=\"400\" dx=\"14\">", facts, "</tspan></text>\n");
    const double rows = top + kTitle - 8;
    const double bottom = rows + ranks * pitch;
    axis(rows, bottom);
    const double origin = first_begin(timeline);
    const double end = timeline.makespan();
    const int every = static_cast<int>(std::ceil(kLabelledRow / pitch));
    for (int rank = 0; rank < ranks; ++rank) {
      const double y = rows + rank * pitch;
      box("lane", x_of(0), y, x_of(end) - x_of(0), pitch * 0.9);
      if (rank % every == 0)
        write("rank", kLeft - 10, y + std::max(box_height(pitch) / 2, 4.0) + 4.5, cat("rank ", rank));
      row(timeline.ranks[rank], origin, y, pitch);
    }
    return bottom + kAxis;
  }

  // Four digits at most, in the unit of the axis.
  std::string amount(double time) const {
    const double value = time / per_unit_;
    return px(std::abs(value) >= 100 ? std::round(10 * value) / 10 : value);
  }

  void axis(double top, double bottom) {
    const double step = tick_step(longest_);
    for (int i = 0; i * step <= longest_ * (1 + 1e-9); ++i) {
      line("grid", x_of(i * step), top, bottom + 5);
      write("tick", x_of(i * step), bottom + 20, amount(i * step));
    }
    body_ += cat("<text class=\"tick\" style=\"text-anchor:end\" x=\"", px(kLeft - 10), "\" y=\"", px(bottom + 20),
                 "\">", unit_name_, "</text>\n");
  }

  double box_height(double pitch) const { return pitch * (thin_lines_ ? 0.74 : 0.9); }

  // Compute boxes in the upper part of the row, everything else as a thin line at its foot.
  void row(const std::vector<Span>& spans, double origin, double y, double pitch) {
    const double height = box_height(pitch);
    const double narrowest = pitch < kLabelledRow ? 1 : kNarrowest;
    std::map<std::string, std::string> small;  // boxes too small for a number, as one path for each style
    double drawn_compute = -1;
    double drawn_other = -1;
    for (const auto& span : spans) {
      const bool compute = computes(span.action.op);
      double& drawn = compute ? drawn_compute : drawn_other;
      const double begin = x_of(span.begin - origin);
      const double end = x_of(span.end - origin);
      if (end - drawn < narrowest || span.end <= span.begin) continue;
      const double from = std::max(begin, drawn);
      drawn = end;
      const char* style = kind(span.action.op).style;
      const double gap = !compute || end - from < 2 ? 0 : end - from < 4 ? 0.5 : 1;
      const double width = end - from - gap;
      if (!compute) {
        small[style] += outline(from, y + pitch * 0.79, width, pitch * 0.11);
      } else if (height < kLabelledRow || width < kSmallBox) {
        small[style] += outline(from, y, width, height);
      } else {
        box(style, from, y, width, height);
        number(span.action, from + width / 2, y + height / 2, width);
        body_ += '\n';
      }
      seen_.insert(style);
    }
    for (const auto& [style, path] : small) body_ += cat("<path class=\"", style, "\" d=\"", path, "\"/>\n");
  }

  static std::string outline(double x, double y, double width, double height) {
    return cat("M", px(x), " ", px(y), "h", px(width), "v", px(height), "h", px(-width), "z");
  }

  void number(const Action& action, double x, double y, double width) {
    const std::string digits = std::to_string(action.micro);
    if (width < digits.size() * kDigit + 3) return;
    const bool dark = action.op == Op::InputGrad || action.op == Op::WeightGrad;
    body_ += cat("<text class=\"n", dark ? " d" : "", "\" x=\"", px(x), "\" y=\"", px(y + 4), "\">", digits, "</text>");
  }

  void legend(double y) {
    double x = kLeft;
    const auto entry = [&](const char* style, const char* name, bool thin) {
      box(style, x, thin ? y + 5 : y, 18, thin ? 4 : 14);
      write("legend", x + 25, y + 12, name);
      x += 25 + 6.9 * std::string(name).size() + 22;
    };
    for (Op op : {Op::Forward, Op::FullBackward, Op::InputGrad, Op::WeightGrad, Op::SendForward, Op::ReduceGrad}) {
      if (seen_.contains(kind(op).style)) entry(kind(op).style, kind(op).name, !computes(op));
    }
    entry("lane", "idle", false);
  }

  const std::vector<NamedTimeline>& timelines_;
  double longest_ = 1;
  double per_unit_ = 1;
  bool thin_lines_ = false;  // anything but compute
  const char* unit_name_ = "";
  std::set<std::string> seen_;  // styles that occur
  std::string body_;
};

}  // namespace

std::string timeline_svg(const std::vector<NamedTimeline>& timelines, TimeUnit unit) {
  return Picture(timelines, unit).text();
}

}  // namespace braid
