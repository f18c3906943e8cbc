// Trial steps of a run, to measure their time and memory. Their results are discarded.
#pragma once

#include <vector>

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::train {

// Measurements of trial steps. Times and fractions are medians over all steps but the first.
struct TrialSteps {
  double step_seconds = 0;
  double bubble_fraction = 0;
  double peak_bytes = 0;  // largest peak of memory of a rank
};

// Makes `steps` steps of the run `spec` on ranks of its own. Throws as Launcher::run() does.
// REQUIRES: `spec` has no problems and a resolved vocabulary; `steps` is at least 2.
TrialSteps run_trial_steps(const RunSpec& spec, const data::Corpus& corpus, int steps);

}  // namespace braid::train
