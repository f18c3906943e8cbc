// Peaks of a rank's memory, counted in (stage, microbatch) pairs and in versions of weights. Programs are in order, so
// no clock is needed.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// For each rank, the largest number of pairs whose forward has started and whose input-gradient pass (B or I) has not
// ended: the activations in flight. While a fused pair runs, both of its microbatches count.
std::vector<int> peak_activations(const Schedule& schedule);

// For each rank, the largest number of pairs whose forward has started and whose weight pass (B or W) has not ended.
std::vector<int> peak_pending_weight_grads(const Schedule& schedule);

// The most versions of one stage's weights that must be kept at the same time. A microbatch needs the version that its
// forward read until its input-gradient pass; every UPDATE makes a new one. 1 for schedules without UPDATE.
int weight_versions(const Schedule& schedule);

// The same counts along one program, and where each first exceeds a limit.
enum class HeldResource { Activations, WeightGrads, WeightVersions };
struct HeldPeak {
  int most = 0;
  int first_above = -1;  // index of the action that first takes the count above the limit; -1: none does
};
HeldPeak held_peak(const Schedule& schedule, int rank, HeldResource held, int limit);

}  // namespace braid::schedule
