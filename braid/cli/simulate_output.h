// The output of braid simulate: a table of quantities, a line of JSON.
#pragma once

#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "braid/schedule/schedule.h"
#include "braid/schedule/summary.h"
#include "braid/schedule/timeline.h"

namespace braid::cli {

struct Played {
  Schedule schedule;
  schedule::Timeline timeline;  // empty when nothing draws it
  schedule::Summary summary;
  // In comparisons: which part of a rank's layers a stage holds, and of a rank's times takes; all schedules run the
  // same model.
  std::optional<double> stage_share = {};
};

// One row per quantity, one column per schedule. Where stages hold a share of a rank's layers, peaks are in
// microbatches of all of a rank's layers, and a line below says so.
std::string summary_text(const std::vector<Played>& all);

// One JSON object, with `programs` as the last key, and a newline. There may be millions of actions, so it is written
// piece by piece.
void write_json(std::ostream& out, const Played& played);

// "1f1b, 4 ranks, 8 microbatches".
std::string heading(const Played& played);

}  // namespace braid::cli
