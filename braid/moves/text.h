// Tables of moves as text: CSV for programs, a grid for people.
#pragma once

#include <string>

#include "braid/moves/table.h"

namespace braid::moves {

// Returns a header and a row for each move, in the order in which they begin. `before` is empty for evictions.
//
//   after,move,chunk,bytes,before
//   -1,load,2,4096,0
//   3,drop,0,4096,
std::string to_csv(const Trace& trace, const Table& table);

// Returns a row for each chunk and a column for each use. U: used; -: in memory; <: being loaded, or loaded before its
// use; .: not in memory.
//
//   chunk 0  U - - U
//   chunk 1  . < U .
std::string grid(const Trace& trace, const Table& table);

}  // namespace braid::moves
