// Sends rows as float64 tensors, while the step continues.
#include "braid/train/timeline_exchange.h"

#include <ATen/ops/zeros.h>

#include <algorithm>
#include <limits>
#include <map>
#include <utility>

#include "braid/comm/agree.h"
#include "braid/comm/op_name.h"

namespace braid::train {
namespace {

constexpr int64_t kRowNumbers = 4 + 2 * param::kNumMemoryCategories;

// Numbers of bytes are far below 2^53, so float64 holds them exactly.
void write_row(const BusyRow& row, double* out) {
  for (const double time : {row.begin, row.end, row.busy}) *out++ = time;
  *out++ = static_cast<double>(row.memory.peak_total_bytes);
  for (const int64_t bytes : row.memory.bytes) *out++ = static_cast<double>(bytes);
  for (const int64_t bytes : row.memory.peak_bytes) *out++ = static_cast<double>(bytes);
}

BusyRow read_row(const double* in) {
  BusyRow row;
  for (double* time : {&row.begin, &row.end, &row.busy}) *time = *in++;
  row.memory.peak_total_bytes = static_cast<int64_t>(*in++);
  for (int64_t& bytes : row.memory.bytes) bytes = static_cast<int64_t>(*in++);
  for (int64_t& bytes : row.memory.peak_bytes) bytes = static_cast<int64_t>(*in++);
  return row;
}

void start_at_zero(schedule::Timeline& timeline) {
  const double first = timeline.extent().begin;
  const auto shift = [first](auto& rows) {
    for (auto& row : rows) {
      for (auto& each : row) {
        each.begin -= first;
        each.end -= first;
      }
    }
  };
  shift(timeline.ranks);
  shift(timeline.disk);
}

}  // namespace

BusyRow busy_row(const std::vector<schedule::Span>& spans, const param::MemoryUse& memory) {
  BusyRow row;
  row.memory = memory;
  if (spans.empty()) return row;
  row.begin = spans.front().begin;
  row.end = spans.back().end;
  row.busy = schedule::busy(spans);
  return row;
}

RowsInFlight start_gathering(const BusyRow& mine, Communicator& world) {
  auto row = at::zeros({kRowNumbers}, at::kDouble);
  write_row(mine, row.mutable_data_ptr<double>());
  RowsInFlight rows{at::zeros({world.size(), kRowNumbers}, at::kDouble), {}};
  const comm::CallName name("times of the step");
  rows.work = world.all_gather(rows.all, row);
  return rows;
}

std::vector<BusyRow> finish_gathering(RowsInFlight& rows) {
  rows.work.wait_host();
  std::vector<BusyRow> read;
  for (int64_t rank = 0; rank < rows.all.size(0); ++rank) {
    read.push_back(read_row(rows.all.const_data_ptr<double>() + rank * kRowNumbers));
  }
  return read;
}

double bubble_fraction(const std::vector<BusyRow>& rows, const std::vector<int>& ranks) {
  double begin = std::numeric_limits<double>::infinity(), end = -begin, busiest = 0;
  for (const int rank : ranks) {
    begin = std::min(begin, rows[rank].begin);
    end = std::max(end, rows[rank].end);
    busiest = std::max(busiest, rows[rank].busy);
  }
  return end > begin ? 1 - busiest / (end - begin) : 0;
}

std::vector<schedule::DiskTransfer> at_most(size_t most, const std::vector<schedule::DiskTransfer>& transfers) {
  const size_t times = (transfers.size() + most - 1) / std::max<size_t>(most, 1);
  if (times <= 1) return transfers;
  std::vector<schedule::DiskTransfer> joined;
  std::map<std::pair<schedule::DiskDirection, schedule::DiskContent>, std::pair<size_t, size_t>> open;  // place, count
  for (const schedule::DiskTransfer& transfer : transfers) {
    auto& [place, count] = open[{transfer.direction, transfer.content}];
    if (count++ % times == 0) {
      place = joined.size();
      joined.push_back(transfer);
      continue;
    }
    joined[place].bytes += transfer.bytes;
    joined[place].end = std::max(joined[place].end, transfer.end);
  }
  return joined;
}

schedule::Timeline gathered_timeline(const std::vector<schedule::Span>& spans,
                                     const std::vector<schedule::DiskTransfer>& transfers, Communicator& world) {
  schedule::Timeline timeline;
  timeline.ranks = comm::gather(world, "spans of a step", spans);
  timeline.disk = comm::gather(world, "disk transfers of a step",
                               at_most(kMostTransfers / static_cast<size_t>(world.size()), transfers));
  start_at_zero(timeline);
  return timeline;
}

}  // namespace braid::train
