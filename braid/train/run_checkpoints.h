// The checkpoints of a run, on one rank: when each was written, at once or behind the training, who hears of it, and
// which stay. It does not decide when one is due.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "braid/base/file_system.h"
#include "braid/ckpt/save_behind.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/communicator.h"
#include "braid/train/run.h"
#include "braid/train/trainer.h"

namespace braid::train {

class RunCheckpoints {
 public:
  struct Parts {
    const RunStart& start;
    RunObserver& observer;  // rank 0 alone tells it
    ckpt::CheckpointReading&
        begun_with;  // held until the first checkpoint is there: until then the run may go back to it
  };

  // All of it outlives this. Rank 0 alone removes what does not stay. With checkpoint.async, takes the memory for
  // copies; throws ConfigError on all ranks where checkpoint.host_gib is less. Collective.
  RunCheckpoints(const Parts& parts, Trainer& trainer, Communicator& world);

  // The run's folder is as the run found it, or wants it: what is known of earlier evaluations is read.
  void begin();

  // Saves the trainer as it is. Throws as Trainer::save(). With checkpoint.async it returns before the checkpoint is
  // there, and waits for the one before it first. Collective.
  void save();

  // With checkpoint.async: whether one is not there yet, the same on all ranks; and whether this rank's thread is still
  // at work on it.
  bool under_way() const { return behind_ && behind_->under_way(); }
  bool busy() const { return under_way() && behind_->busy(); }
  // Advances the current save by a phase if no rank is busy. Throws the IoError of any rank on all. Collective.
  void advance();
  // Until the last that was begun is there. Throws as advance(). Collective.
  void finish();

  // Validation losses, by which the best checkpoints stay.
  void heard(int64_t step, double loss) { losses_[step] = loss; }

  // Returns true if the run's folder has, or is about to have, the trainer's state after `step`: saved here, or resumed
  // from. The same on all ranks, whatever their hosts see. Collective.
  bool is_saved(int64_t step) const;
  // Returns the step of the last save that was begun; -1: none yet.
  int64_t saved_step() const { return saved_step_; }
  double saved_at() const { return saved_at_; }  // in now_seconds(); when this was made, where there is none

 private:
  void make_room();
  void published();
  void remove_superseded();

  const RunSpec& spec_;
  RunObserver& observer_;
  ckpt::CheckpointReading& begun_with_;
  Trainer& trainer_;
  Communicator& world_;
  PosixFileSystem files_;
  std::unique_ptr<ckpt::SaveBehind> behind_;  // null: steps wait
  std::map<int64_t, double> losses_;
  int64_t saved_step_ = -1;
  double saved_at_;
};

}  // namespace braid::train
