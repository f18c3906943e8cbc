// Converts timelines to a trace for Perfetto and chrome://tracing, and back.
#pragma once

#include <string>
#include <vector>

#include "braid/report/timeline_svg.h"

namespace braid::report {

// Returns a trace in the JSON object format of Google's "Trace Event Format". Each timeline is a process, in their
// order; each rank is a thread; each span is a complete event ("X"). Event times are microseconds from the timeline's
// first begin, with three decimals; times of `timelines` are in seconds. Spans of one thread must nest: transfers that
// run beside other actions are in a thread of their own. Events are named like "forward 3", because viewers colour by
// the words. A fused pair is one event, "forward 7 + backward 3". The disk transfers of one direction and content are
// in a thread of their own, where those that overlap are one event.
std::string chrome_trace(const std::vector<NamedTimeline>& timelines);

// Returns the timelines of a trace from chrome_trace(), with times in seconds. `origin` names the text in errors.
// Throws ConfigError if the text is not such a trace.
std::vector<NamedTimeline> parse_chrome_trace(const std::string& trace, const std::string& origin);

}  // namespace braid::report
