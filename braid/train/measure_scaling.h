// Times steps of a run at several numbers of data ranks. Prints nothing and writes no files.
#pragma once

#include <functional>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

struct ScalingRequest {
  std::vector<int> ranks;  // sizes of the data axis to measure, ascending
  int steps = 6;           // number of timed steps at each size, after one step that is not timed
};

struct MeasuredScaling {
  struct Point {
    int data = 1;                  // data ranks
    double step_seconds = 0;       // median
    double tokens_per_second = 0;  // at step_seconds
  };
  std::vector<Point> strong;  // train.batch sequences per step
  std::vector<Point> weak;    // train.batch x data / ranks[0] sequences per step
};

// Measures the run `spec`, which is as for run_training() except that mesh.data is ignored. At every size, a rank
// computes with the number of threads (spec/rank_hosts.h) that it has at the largest size. Throws ConfigError with all
// problems of all sizes.
MeasuredScaling measure_scaling(const RunSpec& spec, const ScalingRequest& request);

}  // namespace braid::train
