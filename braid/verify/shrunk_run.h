// A small run with the structure of a large one.
#pragma once

#include "braid/data/corpus.h"
#include "braid/spec/run_spec.h"

namespace braid::verify {

// Returns `run` with few and small layers, a small vocabulary, a short context and a small batch. Mesh, schedule,
// sharding, recomputation and types stay, and what they divide remains divisible: heads, features and tokens by tensor
// ranks, layers by stages, microbatches by replicas. Heads keep sharing keys as they did, layers keep their kinds. A
// partition that lists the blocks of each stage keeps its layers. Initial weights are random and larger, so that
// attention is far from uniform. Throws ConfigError if no small run has the structure.
RunSpec shrunk(const RunSpec& run);

// Returns documents of random tokens and random lengths, as many as `steps` steps of `run` need.
data::Corpus synthetic_corpus(const RunSpec& run, int steps);

}  // namespace braid::verify
