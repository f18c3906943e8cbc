// Saves checkpoints. After a checkpoint is published, rank 0 reports it and removes old ones.
#include "braid/train/run_checkpoints.h"

#include <cmath>
#include <filesystem>
#include <system_error>
#include <utility>

#include "braid/base/clock.h"
#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/ckpt/exchange.h"
#include "braid/ckpt/retention.h"
#include "braid/ckpt/saved_checkpoints.h"
#include "braid/comm/agree.h"
#include "braid/param/memory_account.h"
#include "braid/spec/describe.h"
#include "braid/spec/fields.h"

namespace braid::train {

RunCheckpoints::RunCheckpoints(const Parts& parts, Trainer& trainer, Communicator& world)
    : spec_(parts.start.spec),
      observer_(parts.observer),
      begun_with_(parts.begun_with),
      trainer_(trainer),
      world_(world),
      saved_at_(now_seconds()) {
  if (spec_.checkpoint.async) make_room();
}

void RunCheckpoints::begin() {
  if (world_.rank() == 0 && spec_.checkpoint.keep_best > 0) losses_ = observer_.recorded_evaluations();
}

// Rank 0 looks for all ranks, since a save is collective and hosts may see different folders.
bool RunCheckpoints::is_saved(int64_t step) const {
  if (saved_step_ == step) return true;
  std::error_code unknown;
  const bool is_there =
      world_.rank() == 0 &&
      std::filesystem::equivalent(spec_.train.resume, ckpt::checkpoint_folder(spec_.train.out, step), unknown);
  return comm::broadcast(world_, "checkpoint that is saved already", is_there);
}

void RunCheckpoints::make_room() {
  ckpt::SavePlan plan = trainer_.save_plan();
  const int64_t most = comm::agree(world_, "bytes of a snapshot", ckpt::Snapshot::bytes_of(plan.shard), ReduceOp::Max);
  const double given = spec_.checkpoint.host_gib, needed = std::ldexp(static_cast<double>(most), -30);
  if (given > 0 && given < needed) {
    const double enough = std::ceil(needed * 1e6) / 1e6;
    throw ConfigError({{"checkpoint.host_gib", spec::toml_text(given),
                        cat("must be at least the ", human_bytes(std::ldexp(needed, 30)),
                            " that a rank's part of a checkpoint takes, or 0"),
                        spec::toml_text(enough)}});
  }
  const param::MemoryScope scope(param::MemoryCategory::Snapshots);
  behind_ = std::make_unique<ckpt::SaveBehind>(std::move(plan), world_, files_);
}

void RunCheckpoints::save() {
  finish();
  const int64_t step = trainer_.num_steps();
  const std::string directory = ckpt::checkpoint_folder(spec_.train.out, step), config = spec::to_toml(spec_);
  if (behind_) {
    trainer_.save(config, [&](const ckpt::CheckpointContent& content) { behind_->start(directory, content); });
  } else {
    trainer_.save(directory, config);
  }
  saved_step_ = step;
  saved_at_ = now_seconds();
  if (!behind_) published();
}

void RunCheckpoints::advance() {
  if (behind_->advance()) published();
}

void RunCheckpoints::finish() {
  while (under_way()) advance();
}

// From here on a rollback goes back to this checkpoint, and old checkpoints may be removed.
void RunCheckpoints::published() {
  begun_with_.end();
  if (world_.rank() != 0) return;
  observer_.on_checkpoint(saved_step_, ckpt::checkpoint_folder(spec_.train.out, saved_step_));
  remove_superseded();
}

// Only reports failures: the new checkpoint is published, and one that cannot be removed must not keep the others.
void RunCheckpoints::remove_superseded() {
  const auto or_told = [this](const auto& removal) {
    try {
      removal();
    } catch (const IoError& error) {
      observer_.on_choice(cat("a checkpoint that checkpoint.keep has no place for: ", error.what()));
    }
  };
  or_told([&] {
    for (const std::string& left : ckpt::half_removed_checkpoints(spec_.train.out)) files_.remove_all(left);
    const ckpt::Retention retention{spec_.checkpoint.keep, spec_.checkpoint.keep_best};
    for (const ckpt::SavedCheckpoint& saved : ckpt::superseded(spec_.train.out, retention, losses_)) {
      or_told([&] { ckpt::remove_checkpoint(saved, files_); });  // a checkpoint that is being read is removed next time
    }
  });
}

}  // namespace braid::train
