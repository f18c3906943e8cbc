// The predicted step of a pipeline as a timeline, to be drawn in the form of a measured one: the simulated passes, the
// waits for tiers that a prediction adds to them, and the transfers of the ranks' disks.
#pragma once

#include <cstddef>
#include <vector>

#include "braid/plan/step_moves.h"
#include "braid/schedule/timeline.h"

namespace braid::plan {

// The seconds of all waits of a rank's passes in a step.
struct StepWaits {
  size_t rank = 0;
  double forward = 0, backward = 0;
};

// Returns the timeline with the waits of one rank, each at the end of a pass: equal parts of `forward` at its forwards,
// equal parts of `backward` at its full backwards or input-gradient passes. All ranks wait at that moment, so the
// timeline gets longer by the waits. A pass lasts until its wait has ended, as a measured one does.
schedule::Timeline with_waits(schedule::Timeline timeline, const StepWaits& waits);

struct ByteSeconds {
  double read = 0, written = 0;  // seconds of a byte
};

// The moves between a rank and its disks in a step, and their times.
struct RankDisk {
  std::vector<DiskMove> moves;
  ByteSeconds in_passes, in_update;
  double hidden_seconds = 0;  // of the last backward, in which the update begins
};

// Returns the transfers of the rank whose passes are `spans`, in the order of their begins. Their bytes are those of
// the moves, each kind rounded to whole bytes once.
//
//   passes   Passes of one kind move equal parts of the bytes of that kind. The transfers of a pass begin with the
//   pass,
//            one after the other, and wait for those of the pass before. Bytes of passes that the rank does not have
//            are moved after its last one.
//   norm     No time is predicted for its bytes: a transfer at the begin of the update takes no time.
//   update   One read, then one write, of each content. The update begins at `update_begin`.
std::vector<schedule::DiskTransfer> disk_transfers(const std::vector<schedule::Span>& spans, const RankDisk& disk,
                                                   double update_begin);

// The parts of a predicted step beside its passes.
struct StepParts {
  StepWaits waits;
  double exchange_seconds = 0;  // between the last pass and the update
  std::vector<RankDisk> disks;  // by rank
};

// Returns the timeline of the passes with waits and transfers. No rank has a row of transfers if none moves bytes.
schedule::Timeline step_timeline(const schedule::Timeline& passes, const StepParts& parts);

}  // namespace braid::plan
