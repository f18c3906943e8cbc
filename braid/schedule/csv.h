// Action tables as CSV, the form PyTorch's pipelining writes and reads: one row per rank, an empty cell is an idle
// slot. It works on text; files are the caller's.
#pragma once

#include <string>
#include <string_view>

#include "braid/schedule/schedule.h"

namespace braid::schedule {

// One word (program_text.h) per cell, so a fused pair is one. When all actions are F, B, I or W: one column per slot of
// unit_time(), idle ones empty; actions that never run follow without gaps. Otherwise the programs as they are. A rank
// without actions is a row of two empty cells.
std::string to_csv(const Schedule& schedule);

// The schedule of a table. Empty cells are skipped; stages, owners and microbatches are those that appear. A stage may
// be on two ranks when one has its lower microbatches and the other its upper ones, parted at one microbatch for all
// stages: then the schedule is mirrored. Nothing is promised.
// Throws ConfigError naming every blank row, row and column of every cell that is no word or puts its stage on a rank
// too many, and every stage that is on none.
Schedule from_csv(std::string_view table, std::string name);

}  // namespace braid::schedule
