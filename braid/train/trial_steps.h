// Some steps of a run of which nothing is kept: what measures how long they take and what they hold.
#pragma once

#include <vector>

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Medians over the steps but the first.
struct TrialSteps {
  double step_seconds = 0;
  double bubble_fraction = 0;
  double peak_bytes = 0;  // of the rank that held most at once
};

// As many ranks as `spec` says, which has no problems and a resolved vocabulary, make `steps` steps, at least 2. Throws
// what Launcher::run() throws.
TrialSteps run_trial_steps(const RunSpec& spec, const data::Corpus& corpus, int steps);

}  // namespace braid::train
