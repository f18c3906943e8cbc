// What braid simulate says of schedules that were played: a table of quantities, a line of JSON.
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/timeline.h"
#include "braid/sim/summary.h"

namespace braid {

struct Played {
  Schedule schedule;
  Timeline timeline;  // empty when nothing draws it
  Summary summary;
};

// One row per quantity, one column per schedule.
std::string summary_text(const std::vector<Played>& all);

// One JSON object, with `programs` as the last key, and a newline. There may be millions of actions, so it is written
// piece by piece.
void write_json(std::ostream& out, const Played& played);

// "1f1b, 4 ranks, 8 microbatches".
std::string heading(const Played& played);

}  // namespace braid
