// Action tables as CSV, the form PyTorch's pipelining writes and reads: one row per rank, an empty cell is an idle
// slot. It works on text; files are the caller's.
#pragma once

#include <string>
#include <string_view>

#include "braid/schedule/schedule.h"

namespace braid {

// When all actions compute: one column per slot of unit_time(), idle ones empty. Otherwise the programs as they are.
std::string to_csv(const Schedule& schedule);

// The schedule of a table. Empty cells are skipped; stages, owners and microbatches are those that appear.
// Throws ConfigError naming row and column of every cell that is no action, and every stage on two ranks or on none.
Schedule from_csv(std::string_view table, std::string name);

}  // namespace braid
