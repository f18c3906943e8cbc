// Lists every layout of a run on a number of devices that could be legal. problems() (spec/problems.h) decides which of
// them are legal.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "braid/base/word.h"
#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

using braid::operator<<;  // writes enums as their words

// The recompute policy of stages, for memory.recompute. ByStage: each stage recomputes the least that keeps its rank
// within its memory.
enum class RecomputeChoice { None, ByStage, Selective, Full, AsGiven };
constexpr auto words(RecomputeChoice) {
  return std::to_array<std::string_view>({"none", "by stage", "selective", "full", "as given"});
}

// The cut of the model. Balanced: stages with the embedding or the head have fewer blocks, and faster devices have more
// (plan/balanced_partition.h).
enum class CutChoice { Even, Balanced, AsGiven };
constexpr auto words(CutChoice) { return std::to_array<std::string_view>({"even", "balanced", "as given"}); }

// The split of the batch. Balanced: faster data ranks have more microbatches (plan/balanced_partition.h).
enum class BatchSplitChoice { Equal, Balanced, AsGiven };
constexpr auto words(BatchSplitChoice) {
  return std::to_array<std::string_view>({"equal", "in proportion to speed", "as given"});
}

// One layout of a run on its devices: the values that a search varies.
struct LayoutPoint {
  int pipe = 1, data = 1, tensor = 1;
  int microbatch = 1;
  const ScheduleTraits* schedule = nullptr;
  int chunks = 0;  // stages per rank; 0: the schedule's own number
  int zero = 0, zero_group = 0;
  RecomputeChoice recompute = RecomputeChoice::None;
  CutChoice cut = CutChoice::Even;
  BatchSplitChoice shares = BatchSplitChoice::Equal;

  bool operator==(const LayoutPoint&) const = default;
};

// Returns true if both have the same matrix products on equally many ranks, whatever their schedules, cuts, batch
// splits and ZeRO stages.
bool same_work(const LayoutPoint& a, const LayoutPoint& b);

// Replaces the layout of the run. Recompute ByStage becomes "none", a balanced cut "even" and balanced shares "equal",
// until they are chosen. Values that are AsGiven stay.
void set_layout(RunSpec& run, const LayoutPoint& layout);

// Returns the keys of a run file that a layout sets.
const std::vector<std::string>& layout_keys();

// Returns an override such as "mesh.pipe=4" for each key of a layout in which `spec` differs from `run`.
std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec);

struct SpaceRequest {
  RunSpec run;
  int64_t num_devices = 1;
  int devices_per_node = 1;
  std::set<std::string> pinned = {};  // keys of a layout that keep the run's values
  int num_kinds = 1;                  // number of kinds of devices
};

// Returns the layouts that combine:
//
//   meshes         pipe x data x tensor ranks that, with the run's own context and expert ranks, take all devices
//   microbatches   divisors of the number of sequences of one share of the batch
//   ZeRO           all stages, over all data ranks or over those of a node
//   schedules      all that are not asynchronous, with two, three .. stages per rank if the schedule leaves that
//                  open; a single schedule if there is one pipeline rank
//   cuts           even and balanced
//   batch splits   equal and, with several kinds of devices, balanced
//   recompute      each policy
//
// The order is always the same. Layouts of the same work are neighbours. Among these, layouts that differ only in ZeRO
// are neighbours.
std::vector<LayoutPoint> layout_space(const SpaceRequest& request);

}  // namespace braid::plan
