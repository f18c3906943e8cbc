// One node on which all ranks of a run have a device of its own, with round figures for its speeds. Predictions of
// memory do not depend on speeds; those of times on this node only compare runs with each other.
#pragma once

#include <optional>

#include "braid/plan/cluster.h"
#include "braid/plan/prediction.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

// Its devices have no limit of memory, compute 100 Gflop/s and move 10 GB/s; its disk reads and writes 1 GB/s.
Cluster nominal_cluster(const RunSpec& spec);

// Returns the prediction of a run on its nominal cluster, a measured partition taken as an even one. Returns nothing if
// the run cannot be predicted, for example because its schedule is a file; the run itself may still be possible.
std::optional<Prediction> nominal_prediction(RunSpec spec);
// The same on `cluster`.
std::optional<Prediction> nominal_prediction(RunSpec spec, const Cluster& cluster);

}  // namespace braid::plan
