// How much a rank holds at most, counted in (stage, microbatch) pairs. Programs are in order, so no clock is needed.
// It does not know bytes (plan).
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid {

// For each rank, the largest number of pairs whose forward has started and whose input-gradient pass (B or I) has not
// ended: the activations in flight.
std::vector<int> peak_activations(const Schedule& schedule);

// For each rank, the largest number of pairs whose forward has started and whose weight pass (B or W) has not ended.
std::vector<int> peak_pending_weight_grads(const Schedule& schedule);

}  // namespace braid
