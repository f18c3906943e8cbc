// The checkpoints of a run, on one rank: when each was written, who hears of it, and which stay. It does not decide
// when one is due.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "braid/comm/communicator.h"
#include "braid/train/run.h"
#include "braid/train/trainer.h"

namespace braid {

class RunCheckpoints {
 public:
  // All of it outlives this. Rank 0 alone tells `observer` and removes what does not stay.
  RunCheckpoints(const RunStart& start, Trainer& trainer, Communicator& world, RunObserver& observer);

  // Saves the trainer as it is. Throws as Trainer::save(). Collective.
  void save();
  // Validation losses, by which the best checkpoints stay.
  void heard(int64_t step, double loss) { losses_[step] = loss; }

  int64_t saved_step() const { return saved_step_; }  // of the last; -1: none yet
  double saved_at() const { return saved_at_; }       // in now_seconds(); when this was made, where there is none

 private:
  void remove_superseded();

  const RunSpec& spec_;
  Trainer& trainer_;
  Communicator& world_;
  RunObserver& observer_;
  std::map<int64_t, double> losses_;
  int64_t saved_step_ = -1;
  double saved_at_;
};

}  // namespace braid
