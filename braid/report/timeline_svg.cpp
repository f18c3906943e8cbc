// Draws timelines as SVG. The SVG loads no external fonts, scripts or styles.
#include "braid/report/timeline_svg.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "braid/base/text.h"
#include "braid/report/chart_axis.h"
#include "braid/report/disk_rows.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

constexpr double kWidth = 1200;
constexpr double kNamesWidth = 84;  // width of the names of ranks
constexpr double kRight = 28;
constexpr double kPlot = kWidth - kNamesWidth - kRight;
constexpr double kTitle = 46;   // height of the title above a panel
constexpr double kAxis = 46;    // height of the axis below a panel
constexpr double kLegend = 34;  // height of the legend at the bottom, and of a line of it
constexpr double kTallestRow = 32;
constexpr double kRowsHeight = 960;  // rows shrink to fit this, down to kLowestRow
constexpr double kLowestRow = 4;
constexpr double kDiskRow = 0.43;    // height of a row of reads or writes, as a part of the rank's row
constexpr double kDiskRows = 1;      // of both, and the space below
constexpr double kLabelledRow = 14;  // rows below this height carry no text
constexpr double kNarrowest = 0.35;  // pixels; narrower boxes are merged with their neighbours
constexpr double kSmallBox = 8;      // pixels; narrower boxes carry no number
constexpr double kDigit = 6.4;       // width of a digit at the font size of boxes

struct Kind {
  const char* style;  // CSS class of the boxes
  const char* name;   // name in the legend
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
    case Op::Recompute:
      return {"c", "recompute"};
    case Op::Update:
      return {"u", "update"};
    case Op::ReduceGrad:
      return {"r", "gradient reduction"};
    case Op::Unshard:
    case Op::Reshard:
      return {"g", "parameter gathering"};
    default:
      return {"t", "send, receive"};
  }
}

constexpr Kind kPair = {"p", "forward and backward fused"};

// Returns the number of the microbatch, "7", or of both in a fused pair, "7 & 3".
std::string numbers(const std::vector<schedule::Span>& spans, size_t index) {
  std::string digits = std::to_string(spans[index].action.micro);
  if (index + 1 < spans.size() && schedule::second_of_pair(spans, index + 1)) {
    digits += " & " + std::to_string(spans[index + 1].action.micro);
  }
  return digits;
}

// Every rule is limited to class "tl", since a page may hold other pictures.
constexpr char kStyle[] = R"(<style>
.tl text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif;fill:#1f2933}
.tl .title{font-size:17px;font-weight:600}.tl .detail{font-size:14px;fill:#52606d}
.tl .rank{font-size:13px;text-anchor:end;fill:#3e4c59}.tl .tick{font-size:12px;text-anchor:middle;fill:#616e7c}
.tl .disk{font-size:10px;text-anchor:end;fill:#616e7c}
.tl .legend{font-size:13px;fill:#3e4c59}.tl .n{font-size:11px;text-anchor:middle;fill:#fff}.tl .d{fill:#1f2933}
.tl .paper{fill:#fff}.tl .lane{fill:#e6eaf0}.tl .grid{stroke:#d3dae2;stroke-width:1}
.tl .f{fill:#3d6fb4}.tl .b{fill:#2f8f6b}.tl .i{fill:#86cbb0}.tl .w{fill:#efbd6b}
.tl .p{fill:#35718f}.tl .c{fill:#9dbbe0}.tl .u{fill:#7b8794}
.tl .t{fill:#c2528b}.tl .r{fill:#7a5fb0}.tl .g{fill:#b98a3e}
.tl .ds{fill:#4f9d9d}.tl .dg{fill:#a884d0}.tl .dp{fill:#d0a44c}.tl .da{fill:#6a92cc}
</style>
)";

class TimelinePicture {
 public:
  TimelinePicture(const std::vector<NamedTimeline>& timelines, TimeUnit unit) : timelines_(timelines) {
    double longest = 0;
    for (const auto& named : timelines) {
      const schedule::Interval extent = named.timeline.extent();
      longest = std::max(longest, extent.end - extent.begin);
      for (const auto& spans : named.timeline.ranks) {
        thin_lines_ |= std::any_of(spans.begin(), spans.end(),
                                   [](const schedule::Span& s) { return !schedule::computes(s.action.op); });
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
    const double height = legend(y + 2) + kLegend - 2;
    std::string head = cat(R"(<svg xmlns="http://www.w3.org/2000/svg" class="tl" width=")", coordinate(kWidth),
                           R"(" height=")", coordinate(height));
    head += cat(R"(" viewBox="0 0 )", coordinate(kWidth), " ", coordinate(height), R"(" role="img">)", "\n");
    head += cat(kStyle, R"(<rect class="paper" width="100%" height="100%"/>)", "\n");
    return head + body_ + "</svg>\n";
  }

 private:
  double x_of(double time) const { return kNamesWidth + time / longest_ * kPlot; }

  void write(const char* style, double x, double y, const std::string& content) {
    body_ +=
        cat("<text class=\"", style, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y), "\">", content, "</text>\n");
  }

  void box(const char* style, double x, double y, double width, double height) {
    body_ +=
        cat("<rect class=\"", style, "\" x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" width=\"",
            coordinate(width), "\" height=\"", coordinate(height), height >= kLabelledRow ? "\" rx=\"2\"/>" : "\"/>");
  }

  void line(const char* style, double x, double top, double bottom) {
    body_ += cat("<path class=\"", style, "\" d=\"M", coordinate(x), " ", coordinate(top), "V", coordinate(bottom),
                 "\"/>\n");
  }

  double panel(const NamedTimeline& named, double top) {
    const schedule::Timeline& timeline = named.timeline;
    const int ranks = static_cast<int>(timeline.ranks.size());
    double num_rows = ranks;
    for (int rank = 0; rank < ranks; ++rank) num_rows += timeline.disk_of(rank).empty() ? 0 : kDiskRows;
    const double pitch = std::clamp(kRowsHeight / std::max(1.0, num_rows), kLowestRow, kTallestRow);
    const std::string facts = cat("bubble ", fixed(100 * timeline.bubble_fraction(), 1), "%, makespan ",
                                  amount(timeline.makespan()), " ", unit_name_, moved_on_disk(timeline));
    body_ +=
        cat("<text class=\"title\" x=\"", coordinate(kNamesWidth), "\" y=\"", coordinate(top + 26), "\">",
            escaped(named.name), "<tspan class=\"detail\" font-weight=\"400\" dx=\"14\">", facts, "</tspan></text>\n");
    const double rows = top + kTitle - 8, bottom = rows + num_rows * pitch;
    axis(rows, bottom);
    const schedule::Interval extent = timeline.extent();
    const double begin = timeline.makespan() > 0 ? x_of(timeline.first_begin() - extent.begin) : kNamesWidth;
    const Panel shape{pitch, extent, {begin, begin + kPlot / longest_ * timeline.makespan()}};
    double y = rows;
    for (int rank = 0; rank < ranks; ++rank) y = rows_of(timeline, rank, y, shape);
    return bottom + kAxis;
  }

  struct Panel {
    double pitch = 0;            // height of a rank's row
    schedule::Interval extent;   // in time
    schedule::Interval actions;  // in pixels: the extent of the spans
  };

  // Draws a rank, and what it moves on disk below. Returns the top of the next rank.
  double rows_of(const schedule::Timeline& timeline, int rank, double y, const Panel& panel) {
    const auto& [pitch, extent, actions] = panel;
    box("lane", actions.begin, y, actions.end - actions.begin, pitch * 0.9);
    if (rank % static_cast<int>(std::ceil(kLabelledRow / pitch)) == 0)
      write("rank", kNamesWidth - 10, y + std::max(box_height(pitch) / 2, 4.0) + 4.5, cat("rank ", rank));
    row(timeline.ranks[rank], extent.begin, y, pitch);
    y += pitch;
    const auto on_disk = timeline.disk_of(rank);
    if (on_disk.empty()) return y;
    for (const schedule::DiskTransfer& transfer : on_disk) on_disk_.insert(transfer.content);
    const double width = x_of(extent.end - extent.begin) - kNamesWidth;
    const double gap = std::max(1.0, timeline.ranks.size() / 16.0);  // bounds the number of bars
    body_ += disk_rows(on_disk, {kNamesWidth, y, width, kDiskRow * pitch, extent.begin, kPlot / longest_, gap});
    return y + kDiskRows * pitch;
  }

  static std::string moved_on_disk(const schedule::Timeline& timeline) {
    const auto [read, written] = timeline.bytes_on_disk();
    if (read + written == 0) return "";
    return cat(", ", human_bytes(read), " read from disk, ", human_bytes(written), " written");
  }

  // Returns the time in the unit of the axis, with at most two decimals, or one from 100 on.
  std::string amount(double time) const {
    const double value = time / per_unit_;
    return coordinate(std::abs(value) >= 100 ? std::round(10 * value) / 10 : value);
  }

  void axis(double top, double bottom) {
    const double step = round_step(longest_ / 10);
    for (int i = 0; i * step <= longest_ * (1 + 1e-9); ++i) {
      line("grid", x_of(i * step), top, bottom + 5);
      write("tick", x_of(i * step), bottom + 20, amount(i * step));
    }
    body_ += cat("<text class=\"tick\" style=\"text-anchor:end\" x=\"", coordinate(kNamesWidth - 10), "\" y=\"",
                 coordinate(bottom + 20), "\">", unit_name_, "</text>\n");
  }

  double box_height(double pitch) const { return pitch * (thin_lines_ ? 0.74 : 0.9); }

  // Draws compute as boxes in the upper part of the row, and everything else as a thin line below them.
  void row(const std::vector<schedule::Span>& spans, double origin, double y, double pitch) {
    const double height = box_height(pitch);
    const double narrowest = pitch < kLabelledRow ? 1 : kNarrowest;
    std::map<std::string, std::string> small;  // one path by style, of boxes without a number
    double drawn_compute = -1;
    double drawn_other = -1;
    for (size_t i = 0; i < spans.size(); ++i) {
      const schedule::Span& span = spans[i];
      if (schedule::second_of_pair(spans, i)) continue;
      const bool pair = i + 1 < spans.size() && schedule::second_of_pair(spans, i + 1);
      const bool compute = schedule::computes(span.action.op);
      double& drawn = compute ? drawn_compute : drawn_other;
      const double begin = x_of(span.begin - origin);
      const double end = x_of(span.end - origin);
      if (end - drawn < narrowest || span.end <= span.begin) continue;
      const double from = std::max(begin, drawn);
      drawn = end;
      const char* style = pair ? kPair.style : kind(span.action.op).style;
      const double gap = !compute || end - from < 2 ? 0 : end - from < 4 ? 0.5 : 1;
      const double width = end - from - gap;
      if (!compute) {
        small[style] += outline(from, y + pitch * 0.79, width, pitch * 0.11);
      } else if (height < kLabelledRow || width < kSmallBox) {
        small[style] += outline(from, y, width, height);
      } else {
        box(style, from, y, width, height);
        number(span.action.op, numbers(spans, i), {from, y, width, height});
        body_ += '\n';
      }
      seen_.insert(style);
    }
    for (const auto& [style, path] : small) body_ += cat("<path class=\"", style, "\" d=\"", path, "\"/>\n");
  }

  static std::string outline(double x, double y, double width, double height) {
    return cat("M", coordinate(x), " ", coordinate(y), "h", coordinate(width), "v", coordinate(height), "h",
               coordinate(-width), "z");
  }

  struct Area {
    double x, y, width, height;
  };

  void number(Op op, const std::string& digits, const Area& area) {
    if (area.width < digits.size() * kDigit + 3) return;
    const bool dark = op == Op::InputGrad || op == Op::WeightGrad || op == Op::Recompute;
    body_ += cat("<text class=\"n", dark ? " d" : "", "\" x=\"", coordinate(area.x + area.width / 2), "\" y=\"",
                 coordinate(area.y + area.height / 2 + 4), "\">", escaped(digits), "</text>");
  }

  // Returns the top of the legend's last line.
  double legend(double y) {
    double x = kNamesWidth;
    const auto entry = [&](const char* style, const char* name, bool thin) {
      const double width = 25 + 6.9 * std::string(name).size() + 22;
      if (x + width > kWidth) x = kNamesWidth, y += kLegend - 8;
      box(style, x, thin ? y + 5 : y, 18, thin ? 4 : 14);
      write("legend", x + 25, y + 12, name);
      x += width;
    };
    for (Op op : {Op::Forward, Op::FullBackward, Op::InputGrad, Op::WeightGrad, Op::Recompute, Op::Update,
                  Op::SendForward, Op::ReduceGrad, Op::Unshard}) {
      if (seen_.contains(kind(op).style)) entry(kind(op).style, kind(op).name, !schedule::computes(op));
      if (op == Op::FullBackward && seen_.contains(kPair.style)) entry(kPair.style, kPair.name, false);
    }
    for (const schedule::DiskContent content : on_disk_) entry(style_of(content), legend_of(content), true);
    entry("lane", "idle", false);
    return y;
  }

  const std::vector<NamedTimeline>& timelines_;
  double longest_ = 1;
  double per_unit_ = 1;
  bool thin_lines_ = false;  // true if some span is not compute
  const char* unit_name_ = "";
  std::set<std::string> seen_;  // styles in use
  std::set<schedule::DiskContent> on_disk_;
  std::string body_;
};

}  // namespace

std::string timeline_svg(const std::vector<NamedTimeline>& timelines, TimeUnit unit) {
  return TimelinePicture(timelines, unit).text();
}

}  // namespace braid::report
