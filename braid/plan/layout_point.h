// One way of sharing a run out over devices, in a few numbers: what a search varies.
#pragma once

#include <string>
#include <vector>

#include "braid/schedule/generators.h"
#include "braid/spec/run_spec.h"
#include "braid/spec/word.h"

namespace braid::plan {

// The recompute policy of stages, as memory.recompute has it. ByStage: for each stage the least that keeps its rank
// within its memory.
enum class RecomputeChoice { None, ByStage, Selective, Full, AsGiven };
constexpr auto words(RecomputeChoice) {
  return std::to_array<std::string_view>({"none", "by stage", "selective", "full", "as given"});
}

// Balanced: fewer blocks beside the embedding and the head, more on faster devices (plan/balanced_partition.h).
enum class CutChoice { Even, Balanced, AsGiven };
constexpr auto words(CutChoice) { return std::to_array<std::string_view>({"even", "balanced", "as given"}); }

// Balanced: more microbatches on data ranks that are faster (plan/balanced_shares.h).
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

}  // namespace braid::plan
