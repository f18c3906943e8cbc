// What rank 0 tells and removes once a checkpoint is there.
#include "braid/train/run_checkpoints.h"

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/retention.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/spec/describe.h"

namespace braid {

RunCheckpoints::RunCheckpoints(const RunStart& start, Trainer& trainer, Communicator& world, RunObserver& observer)
    : spec_(start.spec), trainer_(trainer), world_(world), observer_(observer), saved_at_(now_seconds()) {
  if (world.rank() == 0 && spec_.checkpoint.keep_best > 0) losses_ = observer.heard_evaluations();
}

void RunCheckpoints::save() {
  const int64_t step = trainer_.num_steps();
  const std::string directory = checkpoint_folder(spec_.train.out, step);
  trainer_.save(directory, to_toml(spec_));
  saved_step_ = step;
  saved_at_ = now_seconds();
  if (world_.rank() != 0) return;
  observer_.on_checkpoint(step, directory);
  remove_superseded();
}

// The new checkpoint is there, whatever becomes of old ones.
void RunCheckpoints::remove_superseded() {
  PosixFileSystem files;
  try {
    for (const std::string& left : half_removed_checkpoints(spec_.train.out)) files.remove_all(left);
    const Retention retention{spec_.checkpoint.keep, spec_.checkpoint.keep_best};
    for (const SavedCheckpoint& saved : superseded(spec_.train.out, retention, losses_)) {
      remove_checkpoint(saved, files);  // one that is being read goes next time
    }
  } catch (const IoError& error) {
    observer_.on_choice(cat("a checkpoint that checkpoint.keep has no place for: ", error.what()));
  }
}

}  // namespace braid
