// Checks a table of moves by playing it.
#pragma once

#include <string>
#include <vector>

#include "braid/moves/table.h"

namespace braid::moves {

// Returns the faults of a table, in the order of its uses; empty if it is valid. In a valid table
//
// * every use finds its chunks in memory, loaded no later than needed,
// * memory, with the space of chunks that are being loaded, never exceeds the capacity,
// * no load is of a chunk that is in memory, no eviction of one that is not,
// * a changed chunk is written when it leaves, an unchanged one is not,
// * no load begins in a step before the one that needs it,
// * the last use leaves in memory the chunks with which the first use begins.
std::vector<std::string> faults(const Trace& trace, const Table& table, int64_t capacity);

}  // namespace braid::moves
