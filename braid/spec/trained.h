// The part of a run's model that is trained: all but the parameters that optimizer.groups freezes.
#pragma once

#include <vector>

#include "braid/base/errors.h"
#include "braid/model/graph.h"
#include "braid/schedule/schedule.h"
#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns the graph of the run's model with its frozen parameters marked (model/trained.h).
model::ModelGraph trained_graph(const RunSpec& spec);

// Returns the operations of the run's model for one token, forward and backward (model/model_flops.h).
double model_flops_per_token(const RunSpec& spec);

// Returns the gradients that the backward of each stage computes; empty if nothing is frozen. REQUIRES:
// pipeline.partition is not measured.
std::vector<StageBackward> stage_backwards(const RunSpec& spec, int num_stages);

// Returns a problem for each group that matches no parameter, for each frozen group whose parameters earlier groups
// train, and one if nothing is left to train. REQUIRES: the model has no problems.
std::vector<Problem> group_problems(const RunSpec& spec);

}  // namespace braid::spec
