// Gathers the spans of all ranks: a row of sums at every step, whole timelines on request.
#pragma once

#include <vector>

#include "braid/comm/communicator.h"
#include "braid/param/memory_account.h"
#include "braid/schedule/timeline.h"

namespace braid::train {

// A summary of one rank's step. Times are in seconds of now_seconds(), and compare within a host only.
struct BusyRow {
  double begin = 0, end = 0, busy = 0;
  param::MemoryUse memory;
};
BusyRow busy_row(const std::vector<schedule::Span>& spans, const param::MemoryUse& memory);

// The rows of all ranks while they are gathered; row r is that of rank r. start_gathering() is collective, and returns
// before other ranks have called it. finish_gathering() blocks.
struct RowsInFlight {
  at::Tensor all;
  Work work;
};
RowsInFlight start_gathering(const BusyRow& mine, Communicator& world);
std::vector<BusyRow> finish_gathering(RowsInFlight& rows);

// Returns 1 - largest busy / (last end - first begin) over `ranks`; 0 if they have no spans.
double bubble_fraction(const std::vector<BusyRow>& rows, const std::vector<int>& ranks);

// The most disk transfers of all ranks that a run returns (launch/hosts_launcher.h bounds their bytes).
inline constexpr size_t kMostTransfers = 1'000'000;

// Returns the transfers, or at most `most` for each direction and content with the same sum of bytes: neighbours of a
// kind are joined, from the first begin to the last end.
std::vector<schedule::DiskTransfer> at_most(size_t most, const std::vector<schedule::DiskTransfer>& transfers);

// Returns the spans and disk transfers of all ranks, in seconds since the first of them began; transfers at_most()
// kMostTransfers. Collective.
schedule::Timeline gathered_timeline(const std::vector<schedule::Span>& spans,
                                     const std::vector<schedule::DiskTransfer>& transfers, Communicator& world);

}  // namespace braid::train
