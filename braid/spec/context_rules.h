// How context ranks divide the work of attention, and the rules of the keys that say so.
#pragma once

#include "braid/spec/run_spec.h"

namespace braid::spec {

// Returns the number of neighbouring context ranks that exchange tokens for heads: 1 for Ring and AllGather, all for
// Ulysses. For UlyssesRing it is mesh.ulysses_ranks or, if that is 0, the largest divisor of mesh.context that divides
// the key heads of a tensor rank. Source: Fang and Zhao, "USP: A Unified Sequence Parallelism Approach" (2024).
int exchange_ranks(const RunSpec& spec);
// Returns the number of ranks whose keys a query meets: mesh.context / exchange_ranks().
int ring_ranks(const RunSpec& spec);
// Returns the heads of the exchange rank that has most of them, divided by those of equal parts.
double most_exchanged_heads(const RunSpec& spec);

}  // namespace braid::spec
