// Draws timelines as a picture, one above the other on one scale.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/timeline.h"

namespace braid::report {

struct NamedTimeline {
  std::string name;
  schedule::Timeline timeline;
};

enum class TimeUnit { Seconds, Units };

// Returns a self-contained SVG. It has for each timeline, in the order given:
// * a title with its bubble fraction;
// * one row per rank, with a box per compute action or fused pair (with its microbatch if that fits);
// * a thin line per transfer or reduction;
// * under the row of a rank that moves bytes on disk, two rows of its reads and writes (disk_rows.h);
// * an axis from the timeline's first begin.
//
// All timelines share the scale of the longest. Boxes too narrow to see are merged: the size of the text is bounded by
// the picture, not by the schedule.
std::string timeline_svg(const std::vector<NamedTimeline>& timelines, TimeUnit unit = TimeUnit::Seconds);

}  // namespace braid::report
