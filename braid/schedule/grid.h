// The printed schedule: one row per rank, one column per slot of time.
#pragma once

#include <string>

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

enum class Color { Plain, Ansi };  // Ansi: coloured backgrounds by escape sequences of 256 colours

struct GridStyle {
  int width = 0;   // most visible characters per line; 0: no limit. The middle of a longer grid gives way to "...".
  int height = 0;  // most lines; 0: no limit. The middle ranks of a longer grid give way to one line of "...".
  // A grid wider than `width` may take so many stretches, one below another, in place of lines that lack their middle:
  // as many as the first round (until every rank has had a backward) and the last (from when a rank begins its last
  // forward) need, with "..." between them.
  int stretches = 1;
  double slot = 0;  // time of one column; 0: the shortest of F, B, I, W or of a fused pair
  Color ink = Color::Plain;
};

// Compute spans only. A cell holds operation and microbatch, and the stage too when a rank has several; a span longer
// than a slot is drawn out with dashes, idle time is dots. A fused pair is one cell, F7&B3. Recompute (R) and update
// (U) are drawn where they take time.
//
//   rank 0  F0 F1 .  .  B0--- .  B1---
//   rank 1  .  F0 B0--- F1 B1---
std::string grid(const Timeline& timeline, const GridStyle& style = {});

// About how many characters that has, colours aside. A slot is never less than 2^-30 of the whole.
double grid_size(const Timeline& timeline, const GridStyle& style = {});

// The schedule on the clock of unit_time().
std::string grid(const Schedule& schedule, const GridStyle& style = {});

}  // namespace braid::schedule
