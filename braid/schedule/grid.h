// Prints a schedule as a grid with one row per rank and one column per slot of time.
#pragma once

#include <string>

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"

namespace braid::schedule {

enum class Color { Plain, Ansi };  // Ansi: coloured backgrounds, by 256-colour escape sequences

struct GridStyle {
  int width = 0;   // most visible characters per line; 0: no limit. "..." replaces the middle of a longer line.
  int height = 0;  // most lines; 0: no limit. A line of "..." replaces the middle ranks of a longer grid.
  // The most stretches into which a grid wider than `width` is split, one below another. With 1, the middle of each
  // line is left out instead. The stretches show the first round (until every rank has run a backward) and the last
  // round (from when the first rank begins its last forward), with "..." between them.
  int stretches = 1;
  double slot = 0;  // time of one column; 0: the shortest F, B, I, W or fused pair
  Color ink = Color::Plain;
};

// Returns the grid of the compute spans. A cell holds operation and microbatch, preceded by the stage if a rank has
// several. Dashes extend a span longer than a slot, and dots are idle time. A fused pair is one cell, F7&B3. Recompute
// (R) and update (U) are drawn if they take time.
//
//   rank 0  F0 F1 .  .  B0--- .  B1---
//   rank 1  .  F0 B0--- F1 B1---
std::string grid(const Timeline& timeline, const GridStyle& style = {});

// Returns the approximate number of characters of the grid, without colours. A slot is at least 2^-30 of the whole
// time.
double grid_size(const Timeline& timeline, const GridStyle& style = {});

// Returns the grid of unit_time(schedule).
std::string grid(const Schedule& schedule, const GridStyle& style = {});

}  // namespace braid::schedule
