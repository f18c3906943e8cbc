// The settings that a resumed run takes from its checkpoint before it loads tensors. resume.h compares the settings
// that must be equal.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

// A setting of a resumed run that differs from the checkpoint's and changes training.
struct TrainingChange {
  std::string key, is, was;  // values as TOML
};

// Returns the keys that train.allow_change can name (change_on_resume.h) whose value differs from `saved` and changes
// training. Keys of the pipeline change it only if a schedule is asynchronous. For the learning rate's decay, only its
// end is compared, not the key that sets it.
std::vector<TrainingChange> training_changes(const RunSpec& spec, const RunSpec& saved);

// Returns true if train.allow_change names the key.
bool may_change(const RunSpec& spec, const std::string& key);

// Returns train.allow_change with `keys` added, as TOML.
std::string allowing(const RunSpec& spec, const std::vector<std::string>& keys);

struct ResumedState {
  RunSpec spec;
  std::string tokenizer_place;       // folder with the files of data.tokenizer; empty: data.tokenizer itself
  std::vector<std::string> choices;  // sentences for the user about settings taken from the checkpoint or changed
};

// Returns the state of a resumed run. It takes over from the checkpoint:
//
//   * the tokenizer saved with it, if data.tokenizer has the same name as there. The files of that name are not used,
//     since they may have changed;
//   * the end of the learning rate's decay, if optimizer.decay_steps is 0. So a larger train.steps keeps the curve.
//
// Without train.resume, returns `spec` itself. With train.init, adds a sentence about it. Throws IoError and
// ConfigError if the checkpoint cannot be read.
ResumedState resumed_state_of(const RunSpec& spec);

}  // namespace braid::train
