// Timelines as a trace that Perfetto and chrome://tracing open, and back.
#pragma once

#include <string>
#include <vector>

#include "braid/report/timeline_svg.h"

namespace braid::report {

// The JSON object format of Google's "Trace Event Format": a process for each timeline, in their order, a thread for
// each rank, and a complete event ("X") for each span, in microseconds from the timeline's first begin, with three
// decimals. Spans of one thread must nest, so transfers that go on beside other actions are in a thread of their own.
// Event names are "forward 3": viewers colour by the words. A fused pair is one event, "forward 7 + backward 3". Times
// of the timelines are in seconds.
std::string chrome_trace(const std::vector<NamedTimeline>& timelines);

// The timelines of a trace that chrome_trace() wrote, times in seconds. `origin` names the text in errors. Throws
// ConfigError when the text is no such trace.
std::vector<NamedTimeline> parse_chrome_trace(const std::string& trace, const std::string& origin);

}  // namespace braid::report
