// A finished or running training run as one HTML page: curves, the timeline of a step, memory, configuration.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"
#include "braid/report/timeline_svg.h"

namespace braid::report {

struct RunPage {
  std::string name;         // of the run's folder
  std::string config_toml;  // as written by the run; may be of another version; empty: not known
  RunRecord record;
  std::vector<NamedTimeline> timelines;  // of one step, the first is drawn on top; empty: none yet
  std::vector<std::string> faults;       // what of the run could not be read, a sentence each; said on top
};

// Self-contained: no address, no font, no script from elsewhere; readable without scripts, in light and dark, on paper
// and on a phone. Every text of the run is escaped. Its size is bounded: curves are thinned to kMostPoints.
std::string run_page(const RunPage& page);

}  // namespace braid::report
