// The settings that a resumed run takes from its checkpoint before it loads tensors. resume.h compares those that must
// be equal.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

// Finds settings with which a resumed run would train differently, key by key.
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

struct ResumedState {
  RunSpec spec;
  std::string tokenizer_place;       // where the files of data.tokenizer are, where that is not their place; else empty
  std::vector<std::string> choices;  // sentences for the user: what was taken over, and what is not as it was
};

// Returns `spec` itself, and a sentence about train.init, for a run without train.resume. A resumed run takes over
//   the tokenizer  that was saved with the checkpoint, where data.tokenizer is named as there: what has become of the
//                  files of that name does not matter;
//   the horizon    of the decay, where optimizer.decay_steps is 0: a larger train.steps leaves the curve as it was.
// Throws IoError and ConfigError when the checkpoint cannot be read.
ResumedState resumed_state_of(const RunSpec& spec);

}  // namespace braid::train
