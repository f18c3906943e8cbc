// The number of threads that a rank computes with.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// train.threads. Where that is 0: as many as have work in the model's matrix products for a microbatch on one rank, at
// least 1 and at most the cores shared out evenly; 1 in reproducible mode, so that layouts compare.
int threads_per_rank(const RunSpec& spec, int cores);

// By the same rule, for one sequence of model.context tokens on one rank.
int threads_to_generate(const ModelSpec& model, int cores);

}  // namespace braid::spec
