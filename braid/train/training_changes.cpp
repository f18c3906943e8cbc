// Compares by key, through the one list of fields.
#include "braid/train/training_changes.h"

#include <algorithm>

#include "braid/spec/change_on_resume.h"
#include "braid/spec/pipeline_stages.h"

namespace braid::train {
namespace {

bool asynchronous(const RunSpec& spec) {
  const ScheduleTraits* traits = spec::traits_of(spec.pipeline);
  return traits && traits->asynchronous();
}

// Compares the ends of the decay, whichever key gives them.
TrainingChange horizons(const RunSpec& spec, const RunSpec& saved) {
  const auto end = [](const RunSpec& of) { return spec::toml_text(int64_t{decay_end(of.optimizer, of.train.steps)}); };
  return {"optimizer.decay_steps", end(spec), end(saved)};
}

// Returns true if the key's other value changes training.
bool counts(const spec::Field& field, const RunSpec& spec, const RunSpec& saved) {
  if (spec::section_of(field) == "pipeline") return asynchronous(spec) || asynchronous(saved);
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

}  // namespace braid::train
