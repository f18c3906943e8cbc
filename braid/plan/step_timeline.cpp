// A prediction has sums over the passes of a step. They are divided evenly here.
#include "braid/plan/step_timeline.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace braid::plan {
namespace {

using schedule::DiskContent;
using schedule::DiskDirection;
using schedule::DiskTransfer;
using schedule::Span;
using schedule::Timeline;

// A moment at which all ranks wait.
struct Pause {
  double at = 0, seconds = 0;
};

// Adds pauses of `seconds` together at the ends of the passes that `is_one` finds, or after the last span.
template <class Predicate>
void add_pauses(const std::vector<Span>& spans, double seconds, const Predicate& is_one, std::vector<Pause>& pauses) {
  if (seconds == 0 || spans.empty()) return;
  std::vector<double> ends;
  for (const Span& span : spans) {
    if (is_one(span.action.op)) ends.push_back(span.end);
  }
  if (ends.empty()) ends.push_back(spans.back().end);
  for (const double end : ends) pauses.push_back({end, seconds / static_cast<double>(ends.size())});
}

}  // namespace

Timeline with_waits(Timeline timeline, const StepWaits& waits) {
  std::vector<Pause> pauses;
  const std::vector<Span>& slowest = timeline.ranks.at(waits.rank);
  add_pauses(
      slowest, waits.forward, [](Op op) { return op == Op::Forward; }, pauses);
  add_pauses(slowest, waits.backward, goes_back, pauses);
  std::ranges::sort(pauses, {}, &Pause::at);
  double sum = 0;  // each pause has the seconds of all up to it from now on
  for (Pause& pause : pauses) pause.seconds = sum += pause.seconds;
  const auto later = [&](double time) {
    const auto next = std::ranges::upper_bound(pauses, time, {}, &Pause::at);
    return next == pauses.begin() ? time : time + std::prev(next)->seconds;
  };
  for (std::vector<Span>& spans : timeline.ranks) {
    for (Span& span : spans) span = {span.action, later(span.begin), later(span.end)};
  }
  return timeline;
}

namespace {

constexpr DiskDirection kBothDirections[] = {DiskDirection::Read, DiskDirection::Write};

double in_direction(const Moved& bytes, DiskDirection direction) {
  return direction == DiskDirection::Read ? bytes.read : bytes.written;
}

double in_direction(const ByteSeconds& seconds, DiskDirection direction) {
  return direction == DiskDirection::Read ? seconds.read : seconds.written;
}

// A pass, and the moves that it has: those of MovedWith up to LaterWeightPass.
struct MovingPass {
  double begin = 0;
  std::array<bool, static_cast<size_t>(MovedWith::Norm)> has{};

  bool& with(MovedWith when) { return has[static_cast<size_t>(when)]; }
};

std::vector<MovingPass> moving_passes(const std::vector<Span>& spans) {
  std::vector<MovingPass> passes;
  std::set<int> ran_forward, ran_weights;  // stages
  for (const Span& span : spans) {
    const Op op = span.action.op;
    MovingPass pass{.begin = span.begin};
    if (op == Op::Forward) {
      pass.with(MovedWith::Forward) = true;
      pass.with(MovedWith::FirstForward) = ran_forward.insert(span.action.stage).second;
    }
    pass.with(MovedWith::Backward) = goes_back(op);
    if (op == Op::FullBackward || op == Op::WeightGrad) {
      pass.with(MovedWith::WeightPass) = true;
      pass.with(MovedWith::LaterWeightPass) = !ran_weights.insert(span.action.stage).second;
    }
    passes.push_back(pass);
  }
  return passes;
}

// A move whose bytes are divided evenly over `count` passes.
struct DividedMove {
  DiskMove move;
  int64_t count = 0, done = 0;

  // Returns the bytes of the next pass. Those of all passes add up to the rounded sum.
  int64_t next(DiskDirection direction) const {
    const double part = in_direction(move.bytes, direction) / static_cast<double>(count);
    return std::llround(part * static_cast<double>(done + 1)) - std::llround(part * static_cast<double>(done));
  }
};

// The moves of passes, and a last pass for bytes of passes that the rank does not have.
class PassTransfers {
 public:
  PassTransfers(const std::vector<Span>& spans, const RankDisk& disk) : disk_(disk), passes_(moving_passes(spans)) {
    MovingPass last{.begin = spans.empty() ? 0 : spans.back().end};
    for (const DiskMove& move : disk.moves) {
      if (move.when >= MovedWith::Norm) continue;
      int64_t count = std::ranges::count_if(passes_, [&](MovingPass& pass) { return pass.with(move.when); });
      if (count == 0) count = 1, last.with(move.when) = true;
      moves_.push_back({move, count});
    }
    passes_.push_back(last);
  }

  std::vector<DiskTransfer> all() && {
    for (MovingPass& pass : passes_) {
      for (const DiskDirection direction : kBothDirections) {
        for (const DividedMove& divided : moves_) {
          if (pass.with(divided.move.when)) add(direction, divided, pass.begin);
        }
      }
      for (DividedMove& divided : moves_) divided.done += pass.with(divided.move.when) ? 1 : 0;
    }
    return std::move(transfers_);
  }

 private:
  void add(DiskDirection direction, const DividedMove& divided, double earliest) {
    const int64_t bytes = divided.next(direction);
    if (bytes == 0) return;
    const double begin = std::max(earliest, free_);
    free_ = begin + static_cast<double>(bytes) * in_direction(disk_.in_passes, direction);
    transfers_.push_back({direction, divided.move.content, bytes, begin, free_});
  }

  const RankDisk& disk_;
  std::vector<MovingPass> passes_;
  std::vector<DividedMove> moves_;
  double free_ = 0;  // when the disk has ended all transfers so far
  std::vector<DiskTransfer> transfers_;
};

void add_update(const RankDisk& disk, double begin, std::vector<DiskTransfer>& transfers) {
  for (const DiskDirection direction : kBothDirections) {
    double seconds = 0;
    for (const DiskMove& move : disk.moves) {
      if (move.when != MovedWith::Update) continue;
      seconds += in_direction(move.bytes, direction) * in_direction(disk.in_update, direction);
    }
    for (const DiskMove& move : disk.moves) {
      const int64_t bytes = std::llround(in_direction(move.bytes, direction));
      if (move.when < MovedWith::Norm || bytes == 0) continue;
      const double end = move.when == MovedWith::Norm ? begin : begin + seconds;
      transfers.push_back({direction, move.content, bytes, begin, end});
    }
    begin += seconds;
  }
}

}  // namespace

std::vector<DiskTransfer> disk_transfers(const std::vector<Span>& spans, const RankDisk& disk, double update_begin) {
  std::vector<DiskTransfer> transfers = PassTransfers(spans, disk).all();
  add_update(disk, update_begin, transfers);
  std::ranges::stable_sort(transfers, {}, &DiskTransfer::begin);
  return transfers;
}

Timeline step_timeline(const Timeline& passes, const StepParts& parts) {
  Timeline timeline = with_waits(passes, parts.waits);
  const double end = timeline.first_begin() + timeline.makespan() + parts.exchange_seconds;
  for (size_t rank = 0; rank < timeline.ranks.size(); ++rank) {
    const RankDisk& disk = parts.disks.at(rank);
    timeline.disk.push_back(disk_transfers(timeline.ranks[rank], disk, end - disk.hidden_seconds));
  }
  if (std::ranges::all_of(timeline.disk, [](const auto& transfers) { return transfers.empty(); })) timeline.disk = {};
  return timeline;
}

}  // namespace braid::plan
