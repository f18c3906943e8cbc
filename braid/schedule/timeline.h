// The times at which the actions of a step ran. The runtime and the simulator both make timelines, which can be drawn
// and compared.
//
// There is one span per action, in the order in which they ran. A fused pair has two, one right after the other, the
// first with its mark. Both have the begin and end of the whole pair, at whose end the outputs of both are available. A
// sum of times must leave out the second (second_of_pair()), as busy() does.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "braid/schedule/action.h"
#include "braid/schedule/schedule.h"

namespace braid::schedule {

struct Span {
  Action action;
  double begin = 0;  // seconds from the runtime, units of the cost model from the simulator
  double end = 0;
};

enum class DiskDirection { Read, Write };
constexpr auto words(DiskDirection) { return std::to_array<std::string_view>({"read", "write"}); }

enum class DiskContent { Optimizer, Gradients, Parameters, Activations };
constexpr auto words(DiskContent) {
  return std::to_array<std::string_view>({"optimizer", "gradients", "parameters", "activations"});
}

// A read or a write of a rank's disks, concurrent with the rank's actions.
struct DiskTransfer {
  DiskDirection direction = DiskDirection::Read;
  DiskContent content = DiskContent::Optimizer;
  int64_t bytes = 0;
  double begin = 0;  // when it was handed to the system, which may have others to end first
  double end = 0;    // when it had ended, or was seen to have ended (disk/disk.h)
};

struct DiskBytes {
  double read = 0, written = 0;
};

struct Interval {
  double begin = 0, end = 0;
};

struct Timeline {
  std::vector<std::vector<Span>> ranks;         // spans of each rank, in the order in which they ran
  std::vector<std::vector<DiskTransfer>> disk;  // of each rank, in the order of their begins; may have fewer ranks

  double first_begin() const;      // 0 if empty
  double makespan() const;         // last end minus first begin, of all ranks
  double busy(int rank) const;     // time of the spans that compute, a fused pair counted once
  double busiest() const;          // the largest busy()
  double bubble_fraction() const;  // (makespan - busiest) / makespan; 0 if empty
  // Returns the times from the first begin to the last end of spans and disk transfers. A transfer may begin before the
  // first span, and an update after the last one moves bytes too. 0 to 0 if empty.
  Interval extent() const;
  DiskBytes bytes_on_disk() const;  // of all ranks
  // Returns a rank's transfers of `disk`.
  std::span<const DiskTransfer> disk_of(size_t rank) const;
};

// Returns true for ops that keep a rank's device busy: F, B, I, W, RECOMPUTE, UPDATE. Returns false for those that
// communicate.
bool computes(Op op);

// Returns true if spans[index] is the second of a fused pair, with the same times as the span before it.
bool second_of_pair(const std::vector<Span>& spans, size_t index);

// Returns the total time of the spans that compute, with a fused pair counted once.
double busy(const std::vector<Span>& spans);

// Returns the schedule's timeline in slots from 0, for pictures and tables. F, B, I, W and a fused pair take one slot
// each, all other actions none. Sends are buffered. Actions that can never run are left out.
Timeline unit_time(const Schedule& schedule);

}  // namespace braid::schedule
