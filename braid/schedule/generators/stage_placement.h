// The placement of stages on ranks, before any action is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// The range of the integers from low to high, both included.
struct NumberRange {
  int low, high;
};

// Returns the number in `range` nearest to `value` for which `valid` holds, the larger of two equally near ones.
// Returns "" if there is none.
std::string nearest_number(int value, NumberRange range, const std::function<bool(int)>& valid);

enum class StagePlacement : uint8_t {
  Linear,    // stage r on rank r
  Loop,      // stage s on rank s mod p
  V,         // stages r and 2p-1-r on rank r
  Mirrored,  // stage r on rank r for the first half of the microbatches, on rank p-1-r for the second
};

// Returns the rank of a stage; if the placement is Mirrored, that of the stage's first copy.
int owner_of_stage(StagePlacement placement, int num_ranks, int stage);

// The chunks of a rank under V: kDown runs first in the forward direction, kUp second.
inline constexpr int kDown = 0;
inline constexpr int kUp = 1;

// The dimensions of a schedule; p in the placements is `ranks`.
struct Layout {
  const char* name;
  StagePlacement placement;
  int ranks;
  int microbatches;
  int chunks = 1;  // stages per rank
  int passes = 2;  // actions per microbatch and stage, for which memory is reserved
};

// Returns a schedule with its owners set and with empty programs.
Schedule laid_out(const Layout& layout);

}  // namespace braid::schedule
