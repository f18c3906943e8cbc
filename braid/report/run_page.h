// Makes an HTML page of a finished or running training run: curves, the timeline of a step, memory, configuration.
#pragma once

#include <string>
#include <vector>

#include "braid/report/run_record.h"
#include "braid/report/timeline_svg.h"

namespace braid::report {

struct RunPage {
  std::string name;         // name of the run's folder
  std::string config_toml;  // text of the run's config.toml, which may be of another version; empty: unknown
  RunRecord record;
  std::vector<NamedTimeline> timelines;  // timelines of one step, the first drawn on top; empty: none yet
  std::vector<std::string> faults;       // sentences about parts of the run that could not be read; shown at the top
  std::string model_svg = {};            // picture of the model; empty: none
};

// Returns a self-contained page: no address, font or script from elsewhere. The page is readable without scripts, in
// light and dark, on paper and on a phone. Every text of the run is escaped. The size is bounded: curves are thinned to
// kMostPoints.
std::string run_page(const RunPage& page);

}  // namespace braid::report
