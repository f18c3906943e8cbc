// Peaks of a rank's memory, counted in (stage, microbatch) pairs and in versions of weights. The order of the programs
// determines them, so no clock is needed.
#pragma once

#include <vector>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns for each rank the largest number of activations in flight: pairs whose forward has started and whose
// input-gradient pass (B or I) has not ended. While a fused pair runs, both of its microbatches count.
std::vector<int> peak_activations(const Schedule& schedule);

// Returns for each rank the largest number of pairs whose forward has started and whose weight pass (B or W) has not
// ended.
std::vector<int> peak_pending_weight_grads(const Schedule& schedule);

// Returns the most versions of one stage's weights that must be kept at the same time; 1 for schedules without UPDATE.
// A microbatch needs the version that its forward read until its input-gradient pass. Every UPDATE makes a new version.
int weight_versions(const Schedule& schedule);

// The resources that the functions above count.
enum class HeldResource { Activations, WeightGrads, WeightVersions };
// The peak of a count along one program.
struct HeldPeak {
  int most = 0;
  int first_above = -1;  // index of the action that first takes the count above the limit; -1: none does
};
HeldPeak held_peak(const Schedule& schedule, int rank, HeldResource held, int limit);

}  // namespace braid::schedule
