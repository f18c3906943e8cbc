// Finds settings with which a resumed run would train differently, key by key.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

struct TrainingChange {
  std::string key, is, was;  // values as TOML
};

// Returns the keys that train.allow_change can name (change_on_resume.h) whose value differs from `saved` and changes
// training. Schedules change it only if asynchronous; the end of the learning rate's decay counts, not which key gives
// it.
std::vector<TrainingChange> training_changes(const RunSpec& spec, const RunSpec& saved);

// Returns true if train.allow_change names the key.
bool may_change(const RunSpec& spec, const std::string& key);

// train.allow_change with these keys too, as TOML.
std::string allowing(const RunSpec& spec, const std::vector<std::string>& keys);

}  // namespace braid::train
