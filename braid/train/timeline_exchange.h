// Spans of all ranks brought together: a row of sums every step, whole timelines on request.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/memory_account.h"
#include "braid/schedule/timeline.h"

namespace braid::train {

// One rank's step in a few numbers; times in seconds of now_seconds(), comparable within a host.
struct BusyRow {
  double begin = 0, end = 0, busy = 0;
  param::MemoryUse memory;
};
BusyRow busy_row(const std::vector<schedule::Span>& spans, const param::MemoryUse& memory);

// All ranks' rows on their way. Row r is rank r's. Starting returns before the others have arrived and is collective;
// finishing blocks.
struct RowsInFlight {
  at::Tensor all;
  Work work;
};
RowsInFlight start_gathering(const BusyRow& mine, Communicator& world);
std::vector<BusyRow> finish_gathering(RowsInFlight& rows);

// 1 - busiest / (last end - first begin) over `ranks`.
double bubble_fraction(const std::vector<BusyRow>& rows, const std::vector<int>& ranks);

// All ranks' spans, in seconds since the first one began. Collective.
schedule::Timeline gathered_timeline(const std::vector<schedule::Span>& mine, Communicator& world);

}  // namespace braid::train
