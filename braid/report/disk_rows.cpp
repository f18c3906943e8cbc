// Bars without text: what they say is in their tooltips.
#include "braid/report/disk_rows.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <utility>

#include "braid/base/text.h"
#include "braid/base/word.h"
#include "braid/report/markup.h"

namespace braid::report {
namespace {

using schedule::DiskContent;
using schedule::DiskDirection;
using schedule::DiskTransfer;

constexpr double kLabelledDiskRow = 10;  // pixels; lower rows have no name
constexpr double kThinnestBar = 0.5;     // pixels

std::string tooltip(const DiskTransfer& bar) {
  const double seconds = bar.end - bar.begin;
  const std::string rate =
      seconds > 0 ? cat(", ", fixed(1e-9 * static_cast<double>(bar.bytes) / seconds, 3), " GB/s") : "";
  return cat(word(bar.direction), " ", legend_of(bar.content), ": ", human_bytes(static_cast<double>(bar.bytes)), rate);
}

struct DiskBox {
  double x, y, width, height;
};

std::string rect(const char* style, const DiskBox& box, const std::string& inside) {
  return cat("<rect class=\"", style, "\" x=\"", coordinate(box.x), "\" y=\"", coordinate(box.y), "\" width=\"",
             coordinate(box.width), "\" height=\"", coordinate(box.height), "\">", inside, "</rect>\n");
}

std::string disk_row(DiskDirection direction, const std::vector<DiskTransfer>& bars, double top,
                     const DiskRowsArea& area) {
  const double height = 0.9 * area.row;
  std::string drawn = rect("lane", {area.left, top, area.width, height}, "");
  if (area.row >= kLabelledDiskRow) {
    drawn += cat("<text class=\"disk\" x=\"", coordinate(area.left - 10), "\" y=\"", coordinate(top + height - 2),
                 "\">", word(direction), "</text>\n");
  }
  std::set<DiskContent> contents;
  for (const DiskTransfer& bar : bars) contents.insert(bar.content);
  const double part = height / std::max(1.0, static_cast<double>(contents.size()));
  for (const DiskTransfer& bar : bars) {
    const auto place = std::distance(contents.begin(), contents.find(bar.content));
    const double x = area.left + area.pixels_per_time * (bar.begin - area.origin);
    const double width = std::max(area.pixels_per_time * (bar.end - bar.begin), kThinnestBar);
    drawn += rect(style_of(bar.content), {x, top + static_cast<double>(place) * part, width, part},
                  cat("<title>", escaped(tooltip(bar)), "</title>"));
  }
  return drawn;
}

}  // namespace

std::vector<DiskTransfer> merged(std::span<const DiskTransfer> transfers, double gap) {
  std::vector<DiskTransfer> bars;
  std::map<std::pair<DiskDirection, DiskContent>, size_t> last;  // place in `bars`
  for (const DiskTransfer& transfer : transfers) {
    const auto [at, is_first] = last.try_emplace({transfer.direction, transfer.content}, bars.size());
    if (is_first || transfer.begin - bars[at->second].end > gap) {
      at->second = bars.size();
      bars.push_back(transfer);
      continue;
    }
    DiskTransfer& bar = bars[at->second];
    bar.bytes += transfer.bytes;
    bar.end = std::max(bar.end, transfer.end);
  }
  return bars;
}

std::string disk_rows(std::span<const DiskTransfer> transfers, const DiskRowsArea& area) {
  std::vector<DiskTransfer> reads, writes;
  for (const DiskTransfer& bar : merged(transfers, area.gap / area.pixels_per_time)) {
    (bar.direction == DiskDirection::Read ? reads : writes).push_back(bar);
  }
  return disk_row(DiskDirection::Read, reads, area.top, area) +
         disk_row(DiskDirection::Write, writes, area.top + area.row, area);
}

const char* style_of(DiskContent content) {
  constexpr const char* kStyles[] = {"ds", "dg", "dp", "da"};
  return kStyles[static_cast<size_t>(content)];
}

const char* legend_of(DiskContent content) {
  constexpr const char* kNames[] = {"optimizer states", "gradients", "parameters", "activations"};
  return kNames[static_cast<size_t>(content)];
}

}  // namespace braid::report
