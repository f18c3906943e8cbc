// The placement of stages on ranks, before any action is written.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// The valid number nearest to one that is not.
struct NumberRange {
  int low, high;  // both inside
};

// The number in `range` nearest to `value` for which `valid` holds, the larger of two; "" when there is none.
std::string nearest_number(int value, NumberRange range, const std::function<bool(int)>& valid);

enum class StagePlacement : uint8_t {
  Linear,    // stage r on rank r
  Loop,      // stage s on rank s mod p
  V,         // stages r and 2p-1-r on rank r
  Mirrored,  // stage r on rank r for the first half of the microbatches, on rank p-1-r for the second
};

// The rank of a stage; of a mirrored one that of its first copy.
int owner_of_stage(StagePlacement placement, int num_ranks, int stage);

// Chunks of a rank under V: where microbatches come in, and where they come back.
inline constexpr int kDown = 0;
inline constexpr int kUp = 1;

// The frame of a schedule of p = ranks.
struct Layout {
  const char* name;
  StagePlacement placement;
  int ranks;
  int microbatches;
  int chunks = 1;  // stages per rank
  int passes = 2;  // actions of a microbatch on a stage, to reserve memory for
};

// The schedule with its owners and with empty programs.
Schedule laid_out(const Layout& layout);

}  // namespace braid::schedule
