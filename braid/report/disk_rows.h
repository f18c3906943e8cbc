// The disk transfers of a rank as bars: two rows of the picture of a timeline, for reads and writes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "braid/schedule/timeline.h"

namespace braid::report {

// Returns the transfers in the order of their begins. Those of the same direction and content are one where at most
// `gap` lies between the end of the earlier ones and the begin of the next. REQUIRES: they are in that order.
std::vector<schedule::DiskTransfer> merged(std::span<const schedule::DiskTransfer> transfers, double gap);

// The rows' place in the picture, in pixels, and the scale of times.
struct DiskRowsArea {
  double left = 0, top = 0, width = 0;
  double row = 0;     // height of each row
  double origin = 0;  // time at `left`
  double pixels_per_time = 1;
  double gap = 1;  // pixels between bars that are merged
};

// Returns the elements of an SVG with class "tl" (timeline_svg.h). A row is divided among the contents that it has, so
// that no bar hides another. Each bar has a tooltip with content, bytes and GB/s, from its begin to its end.
std::string disk_rows(std::span<const schedule::DiskTransfer> transfers, const DiskRowsArea& area);

// Returns the CSS class of a content's bars, and its name in a legend.
const char* style_of(schedule::DiskContent content);
const char* legend_of(schedule::DiskContent content);

}  // namespace braid::report
