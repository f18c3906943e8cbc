// Reads the checkpoint's manifest and the tokenizer's files.
#include "braid/train/resumed_state.h"

#include <algorithm>

#include "braid/base/path_look.h"
#include "braid/base/text.h"
#include "braid/ckpt/checkpoint.h"
#include "braid/spec/change_on_resume.h"
#include "braid/spec/partition.h"
#include "braid/train/initial_weights.h"
#include "braid/train/resume.h"

namespace braid::train {
namespace {

bool asynchronous(const RunSpec& spec) {
  const ScheduleTraits* traits = spec::traits_of(spec.pipeline);
  return traits && traits->asynchronous();
}

// Compares the steps at which the learning rate's decay ends, whichever key sets them.
TrainingChange horizons(const RunSpec& spec, const RunSpec& saved) {
  const auto end = [](const RunSpec& of) { return spec::toml_text(int64_t{decay_end(of.optimizer, of.train.steps)}); };
  return {"optimizer.decay_steps", end(spec), end(saved)};
}

bool reproducible(const RunSpec& spec) { return spec.train.reduction == Reduction::Reproducible; }

// Returns true if the changed value of the key changes training.
bool counts(const spec::Field& field, const RunSpec& spec, const RunSpec& saved) {
  if (spec::section_of(field) == "pipeline") return asynchronous(spec) || asynchronous(saved);
  if (field.key == "train.tensor_parts") return reproducible(spec) && reproducible(saved);
  if (field.key == "optimizer.decay_steps") return has_decay_end(spec.optimizer) && has_decay_end(saved.optimizer);
  return true;
}

}  // namespace

std::vector<TrainingChange> training_changes(const RunSpec& spec, const RunSpec& saved) {
  std::vector<TrainingChange> changes;
  for (const spec::Field& field : spec::fields()) {
    if (spec::change_on_resume(field) != spec::ChangeOnResume::ByLeave) continue;
    const TrainingChange change =
        field.key == "optimizer.decay_steps"
            ? horizons(spec, saved)
            : TrainingChange{field.key, spec::value_text(field, spec), spec::value_text(field, saved)};
    if (change.is != change.was && counts(field, spec, saved)) changes.push_back(change);
  }
  return changes;
}

bool may_change(const RunSpec& spec, const std::string& key) {
  return std::ranges::find(spec.train.allow_change, key) != spec.train.allow_change.end();
}

std::string allowing(const RunSpec& spec, const std::vector<std::string>& keys) {
  spec::Strings all = spec.train.allow_change;
  for (const std::string& key : keys) {
    if (std::ranges::find(all, key) == all.end()) all.push_back(key);
  }
  return spec::toml_text(all);
}

namespace {

void take_tokenizer(ResumedState& run, const ckpt::CheckpointInfo& info) {
  const std::string &name = run.spec.data.tokenizer, &directory = run.spec.train.resume;
  if (name != info.tokenizer || name == kByteTokenizer) return;
  run.tokenizer_place = ckpt::tokenizer_folder(directory);
  if (run.tokenizer_place.empty()) {
    run.choices.push_back(cat("the tokenizer at ", name, ": ", directory, " was saved without its own"));
  } else if (path_kind(name) == PathKind::Nothing) {
    run.choices.push_back(cat("the tokenizer that was saved with ", directory, ": there is none at ", name));
  } else if (!same_tokenizer(name, run.tokenizer_place)) {
    run.choices.push_back(cat("the tokenizer that was saved with ", directory, ": the one at ", name, " is another"));
  }
}

std::string told_of_horizon(int was, int steps, const std::string& directory) {
  const std::string keeps = cat("optimizer.decay_steps = ", was, ", as in ", directory, ": the learning rate ");
  const std::string other =
      cat(" (optimizer.decay_steps=", steps, " train.allow_change=[optimizer.decay_steps] would ");
  return was < steps ? cat(keeps, "stays at its lowest from there on", other, "stretch its decay)")
                     : cat(keeps, "does not come to its lowest", other, "shorten its decay)");
}

void take_horizon(ResumedState& run, const RunSpec& saved) {
  OptimizerSpec& optimizer = run.spec.optimizer;
  const int steps = run.spec.train.steps, was = decay_end(saved.optimizer, saved.train.steps);
  if (!has_decay_end(optimizer) || !has_decay_end(saved.optimizer) || decay_end(optimizer, steps) == was) return;
  const std::string& directory = run.spec.train.resume;
  if (optimizer.decay_steps > 0) {
    run.choices.push_back(
        cat("a decay of the learning rate up to step ", optimizer.decay_steps, "; it was ", was, " in ", directory));
    return;
  }
  optimizer.decay_steps = was;
  run.choices.push_back(told_of_horizon(was, steps, directory));
}

// Adds a sentence for each changed key. take_horizon() adds the one about the horizon. Changes that are not allowed are
// refused later, with all other problems (resume.h).
void tell_of_changes(ResumedState& run, const RunSpec& saved) {
  for (const auto& [key, is, was] : training_changes(run.spec, saved)) {
    if (key == "optimizer.decay_steps") continue;
    run.choices.push_back(cat(key, " = ", is, "; it was ", was, " in ", run.spec.train.resume));
  }
}

}  // namespace

ResumedState resumed_state_of(const RunSpec& spec) {
  ResumedState run{spec, "", {}};
  const std::string& directory = spec.train.resume;
  if (!spec.train.init.empty()) run.choices.push_back(told_of_initial_weights(spec.train.init));
  if (directory.empty()) return run;
  const ckpt::CheckpointInfo info = ckpt::read_checkpoint_info(directory);
  take_tokenizer(run, info);
  if (info.config_toml.empty()) return run;
  const RunSpec saved = saved_spec(info, directory);
  take_horizon(run, saved);
  tell_of_changes(run, saved);
  const bool was_reproducible = info.config_toml.find("\nreduction = \"reproducible\"") != std::string::npos;
  if (reproducible(run.spec) && was_reproducible && !has_tensor_parts(info)) {
    run.choices.push_back(cat("other roundings than before: ", directory,
                              " was saved before reproducible sums were the same on every mesh.tensor"));
  }
  return run;
}

}  // namespace braid::train
