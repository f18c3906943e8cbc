// The times of a step.
#include "braid/schedule/timeline.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "braid/schedule/walk.h"

namespace braid::schedule {

bool computes(Op op) { return op <= Op::WeightGrad || op == Op::Recompute || op == Op::Update; }

bool second_of_pair(const std::vector<Span>& spans, size_t index) {
  return index > 0 && fused(spans[index - 1].action, spans[index].action);
}

double busy(const std::vector<Span>& spans) {
  double total = 0;
  for (size_t i = 0; i < spans.size(); ++i) {
    if (computes(spans[i].action.op) && !second_of_pair(spans, i)) total += spans[i].end - spans[i].begin;
  }
  return total;
}

double Timeline::first_begin() const {
  double first = std::numeric_limits<double>::infinity();
  for (const auto& spans : ranks) {
    for (const auto& span : spans) first = std::min(first, span.begin);
  }
  return std::isfinite(first) ? first : 0;
}

double Timeline::makespan() const {
  const double first = first_begin();
  double last = first;
  for (const auto& spans : ranks) {
    for (const auto& span : spans) last = std::max(last, span.end);
  }
  return last - first;
}

double Timeline::busy(int rank) const { return braid::schedule::busy(ranks.at(rank)); }

double Timeline::busiest() const {
  double most = 0;
  for (size_t rank = 0; rank < ranks.size(); ++rank) most = std::max(most, busy(static_cast<int>(rank)));
  return most;
}

double Timeline::bubble_fraction() const {
  const double whole = makespan();
  return whole > 0 ? (whole - busiest()) / whole : 0;
}

Interval Timeline::extent() const {
  Interval all{std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity()};
  const auto add = [&](const auto& rows) {
    for (const auto& row : rows) {
      for (const auto& each : row) all = {std::min(all.begin, each.begin), std::max(all.end, each.end)};
    }
  };
  add(ranks);
  add(disk);
  return all.begin <= all.end ? all : Interval{};
}

DiskBytes Timeline::bytes_on_disk() const {
  DiskBytes sum;
  for (const auto& transfers : disk) {
    for (const DiskTransfer& transfer : transfers) {
      (transfer.direction == DiskDirection::Read ? sum.read : sum.written) += static_cast<double>(transfer.bytes);
    }
  }
  return sum;
}

std::span<const DiskTransfer> Timeline::disk_of(size_t rank) const {
  if (rank < disk.size()) return disk[rank];
  return {};
}

Timeline unit_time(const Schedule& schedule) {
  Timeline timeline;
  timeline.ranks.resize(schedule.num_ranks());
  walk(schedule, SendMode::Buffered, [&](const Visit& visit) {
    auto& spans = timeline.ranks[visit.rank];
    const Program& program = schedule.programs[visit.rank];
    const Action& action = program[visit.index];
    const bool second = pair_ends(program, visit.index);
    double begin = spans.empty() ? 0 : second ? spans.back().begin : spans.back().end;
    if (visit.after_rank >= 0) begin = std::max(begin, timeline.ranks[visit.after_rank][visit.after_index].end);
    const double end = begin + (action.op <= Op::WeightGrad ? 1 : 0);
    if (second) spans.back() = {spans.back().action, begin, end};
    spans.push_back({action, begin, end});
  });
  return timeline;
}

}  // namespace braid::schedule
