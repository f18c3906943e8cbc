// Times steps of a run at several counts of data ranks. It draws nothing and writes nothing.
#pragma once

#include <functional>
#include <vector>

#include "braid/spec/run_spec.h"

namespace braid::train {

struct ScalingRequest {
  std::vector<int> ranks;  // of the data axis, ascending
  int steps = 6;           // timed at each, after one that is not
};

struct MeasuredScaling {
  struct Point {
    int data = 1;                  // data ranks
    double step_seconds = 0;       // median
    double tokens_per_second = 0;  // at that
  };
  std::vector<Point> strong;  // train.batch sequences per step
  std::vector<Point> weak;    // train.batch x data / the first count
};

// `spec` as for run_training, but for mesh.data. Every rank computes with the threads (spec/rank_hosts.h) that it
// would have among the most ranks. Throws ConfigError with every problem of every count.
MeasuredScaling measure_scaling(const RunSpec& spec, const ScalingRequest& request);

}  // namespace braid::train
