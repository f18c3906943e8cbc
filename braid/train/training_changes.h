// What a run that goes on from a checkpoint would train otherwise, key by key. It judges nothing.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid {

struct TrainingChange {
  std::string key, is, was;  // values as TOML
};

// Of the keys that train.allow_change can name (change_on_resume.h) those with another value than `saved`, where it
// makes a difference: of schedules only asynchronous ones train otherwise, and where the decay of the learning rate
// ends counts, not which key says it.
std::vector<TrainingChange> training_changes(const RunSpec& spec, const RunSpec& saved);

// Whether train.allow_change names the key.
bool may_change(const RunSpec& spec, const std::string& key);

// train.allow_change with these keys too, as TOML.
std::string allowing(const RunSpec& spec, const std::vector<std::string>& keys);

}  // namespace braid
