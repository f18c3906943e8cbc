// Action tables as CSV text, in the form that PyTorch's pipelining writes and reads. A table has one row per rank; an
// empty cell is an idle slot.
#pragma once

#include <string>
#include <string_view>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// Returns the table of a schedule. Each cell holds one word (program_text.h): an action or a fused pair. If all actions
// are F, B, I or W, each column is a slot of unit_time(), and idle slots are empty; actions that never run follow
// without gaps. Otherwise the actions of each program follow each other without gaps. A rank without actions is a row
// of two empty cells.
std::string to_csv(const Schedule& schedule);

// Returns the schedule of a table. Empty cells are skipped; stages, owners and microbatches are those that appear. A
// stage may be on two ranks if one has its lower microbatches and the other its upper ones, split at the same
// microbatch for all stages. The schedule is then mirrored. Its promise is empty.
//
// Throws ConfigError naming every blank row, every stage that is on no rank, and row and column of every invalid cell.
// A cell is invalid if it is not a word, or if its stage is already on another rank and the microbatches are not split.
Schedule from_csv(std::string_view table, std::string name);

}  // namespace braid::schedule
