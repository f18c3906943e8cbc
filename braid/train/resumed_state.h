// The settings that a resumed run takes from its checkpoint before it loads tensors. resume.h compares those that must
// be equal.
#pragma once

#include <string>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

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
