// Every layout of a run on so many devices that could be legal. What is legal in the end problems() says.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"
#include "braid/spec/word.h"

namespace braid::plan {

using braid::operator<<;  // enums as their words

// One way of sharing a run out over devices, in a few numbers: what a search varies.

// The recompute policy of stages, as memory.recompute has it. ByStage: for each stage the least that keeps its rank
// within its memory.
enum class RecomputeChoice { None, ByStage, Selective, Full, AsGiven };
constexpr auto words(RecomputeChoice) {
  return std::to_array<std::string_view>({"none", "by stage", "selective", "full", "as given"});
}

// Balanced: fewer blocks beside the embedding and the head, more on faster devices (plan/balanced_partition.h).
enum class CutChoice { Even, Balanced, AsGiven };
constexpr auto words(CutChoice) { return std::to_array<std::string_view>({"even", "balanced", "as given"}); }

// Balanced: more microbatches on data ranks that are faster (plan/balanced_partition.h).
enum class BatchSplitChoice { Equal, Balanced, AsGiven };
constexpr auto words(BatchSplitChoice) {
  return std::to_array<std::string_view>({"equal", "in proportion to speed", "as given"});
}

struct LayoutPoint {
  int pipe = 1, data = 1, tensor = 1;
  int microbatch = 1;
  const ScheduleTraits* schedule = nullptr;
  int chunks = 0;  // 0: the schedule's own number
  int zero = 0, zero_group = 0;
  RecomputeChoice recompute = RecomputeChoice::None;
  CutChoice cut = CutChoice::Even;
  BatchSplitChoice shares = BatchSplitChoice::Equal;

  bool operator==(const LayoutPoint&) const = default;
};

// Returns true if both have the same matrix products on equally many ranks, whatever their schedules, cuts, batch
// splits and ZeRO stages.
bool same_work(const LayoutPoint& a, const LayoutPoint& b);

// Gives the run this layout, in place of another; recompute that is chosen by stage is "none", a balanced cut "even"
// and balanced shares "equal" to begin with. What is as given stays.
void set_layout(RunSpec& run, const LayoutPoint& layout);

// The keys of a layout.
const std::vector<std::string>& layout_keys();

// "mesh.pipe=4" for each key of a layout in which `spec` differs from the run.
std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec);

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
