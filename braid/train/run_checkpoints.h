// The checkpoints of a run, on one rank. Saves them, during or between steps, reports them to the observer, and removes
// old ones. The caller decides when a save is due.
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
    RunObserver& observer;  // called by rank 0 only
    ckpt::CheckpointReading&
        begun_with;  // locks the initial checkpoint, to which the run may roll back until its first one is published
  };

  // All arguments outlive this. Only rank 0 removes checkpoints. With checkpoint.async, allocates the memory for
  // copies; throws ConfigError on all ranks if a rank needs more than checkpoint.host_gib. Collective.
  RunCheckpoints(const Parts& parts, Trainer& trainer, Communicator& world);

  // Reads the losses of earlier evaluations from the observer, on rank 0 with checkpoint.keep_best. Called once, after
  // RunObserver::on_start() or on_rollback().
  void begin();

  // Saves the trainer's state. With checkpoint.async, waits until the previous checkpoint is published, and returns
  // before the new one is. Throws as Trainer::save(). Collective.
  void save();

  // With checkpoint.async, under_way() returns true while a save is not published yet; it is the same on all ranks.
  // busy() returns true while this rank's thread works on that save. Without checkpoint.async, both return false.
  bool under_way() const { return behind_ && behind_->under_way(); }
  bool busy() const { return under_way() && behind_->busy(); }
  // Waits for this rank's thread and advances the current save by a phase. Throws the IoError of any rank on all ranks.
  // REQUIRES: under_way(). Collective.
  void advance();
  // Calls advance() until no save is under way. Throws as advance(). Collective.
  void finish();

  // Records a validation loss. checkpoint.keep_best keeps the checkpoints with the lowest ones.
  void add_evaluation(int64_t step, double loss) { losses_[step] = loss; }

  // Returns true if the run's folder has the trainer's state after `step`, or a save of it is under way. The state may
  // also be the checkpoint that the run resumed from. Returns rank 0's view on all ranks. Collective.
  bool is_saved(int64_t step) const;
  // Returns the step of the last save that was begun; -1 if there is none.
  int64_t saved_step() const { return saved_step_; }
  // Returns the time of the last save, in now_seconds(); if there is none, the time when this object was made.
  double saved_at() const { return saved_at_; }

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
  std::unique_ptr<ckpt::SaveBehind> behind_;  // null: synchronous saves
  std::map<int64_t, double> losses_;
  int64_t saved_step_ = -1;
  double saved_at_;
};

}  // namespace braid::train
