// Every layout of a run on so many devices that could be legal. What is legal in the end problems() says.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "braid/plan/layout_point.h"

namespace braid::plan {

struct SpaceRequest {
  RunSpec run;
  int64_t num_devices = 1;
  int devices_per_node = 1;
  std::set<std::string> pinned = {};  // keys of a layout that stay as the run has them
  int num_kinds = 1;                  // of devices
};

// Meshes of pipe x data x tensor ranks that take all devices beside the run's own context and expert ranks,
// microbatches that divide what a share of the batch has, ZeRO's stages on all data ranks or on those of a node,
// schedules with two, three .. stages per rank where that is open, even cuts and balanced ones, equal shares of the
// batch and, on devices of several kinds, balanced ones, and what is computed again. One rank of pipe has one schedule.
// In an order that is always the same, in which layouts of the same work are neighbours, and of these those that differ
// in ZeRO alone.
std::vector<LayoutPoint> layout_space(const SpaceRequest& request);

}  // namespace braid::plan
