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

// The cut of the model into stages, for pipeline.partition. Balanced: stages with the embedding or the head have fewer
// blocks, and faster devices have more (plan/balanced_partition.h).
enum class CutChoice { Even, Balanced, AsGiven };
constexpr auto words(CutChoice) { return std::to_array<std::string_view>({"even", "balanced", "as given"}); }

// The split of the batch over data ranks, for mesh.batch_shares. Balanced: faster data ranks have more microbatches
// (plan/balanced_partition.h).
enum class BatchSplitChoice { Equal, Balanced, AsGiven };
constexpr auto words(BatchSplitChoice) {
  return std::to_array<std::string_view>({"equal", "in proportion to speed", "as given"});
}

// One layout of a run on its devices: the values that a search varies. AsGiven: the run's own value.
struct LayoutPoint {
  int pipe = 1, data = 1, tensor = 1, context = 1;
  ContextParallel form = ContextParallel::Ring;  // of context parallelism; the run's own if context is 1
  bool sequence_parallel = false;
  int microbatch = 1;
  const ScheduleTraits* schedule = nullptr;
  int chunks = 0;  // stages per rank (virtual stages); 0: the schedule's own number
  int zero = 0, zero_group = 0;
  RecomputeChoice recompute = RecomputeChoice::None;
  CutChoice cut = CutChoice::Even;
  BatchSplitChoice shares = BatchSplitChoice::Equal;

  bool operator==(const LayoutPoint&) const = default;
};

// Returns true if the layouts have the same mesh, form of context parallelism, sequence parallelism, microbatch and
// recompute policy. Their ranks then have the same work, whatever the schedules, cuts, batch splits and ZeRO stages.
bool same_work(const LayoutPoint& a, const LayoutPoint& b);

// Sets the run's keys to the layout. planned_layout() (search.h) chooses the values for ByStage and Balanced later.
// Until then recompute is "none", the partition "even" and the batch shares "equal". Values that are AsGiven stay.
void set_layout(RunSpec& run, const LayoutPoint& layout);

// Returns the configuration keys that a layout sets.
const std::vector<std::string>& layout_keys();

// Returns an override such as "mesh.pipe=4" for each of layout_keys() in which `spec` differs from `run`.
std::vector<std::string> overrides(const RunSpec& run, const RunSpec& spec);

// Fewest tokens of a sequence on a context rank. Searches of runs with short sequences do not grow.
inline constexpr int kFewestContextTokens = 1024;

struct SpaceRequest {
  RunSpec run;
  int64_t num_devices = 1;
  int devices_per_node = 1;
  std::set<std::string> pinned = {};  // keys among layout_keys() that keep the run's values
  int num_kinds = 1;                  // number of kinds of devices
  bool on_cpus = false;               // true: devices are CPU cores, which alone have context parallelism
};

// Returns the layouts that combine:
//
//   meshes         pipe x data x context x tensor ranks that, with the run's own expert ranks, take all devices
//   context        one rank; on CPUs also the run's own number, and all that leave a rank kFewestContextTokens of a
//                  sequence. Their forms are the run's own, a ring and Ulysses; the run's own if it has
//                  mesh.ulysses_ranks
//   tokens         without and, on several tensor ranks, with sequence parallelism
//   microbatches   sizes that divide a data rank's part of the batch (with batch shares, one share)
//   ZeRO           all ZeRO stages, over all data ranks or over those of a node
//   schedules      all that are not asynchronous, with 2 to 8 stages per rank if the schedule leaves that open;
//                  1F1B alone if there is one pipeline rank
//   cuts           even and, with several pipeline ranks, balanced
//   batch splits   equal and, with several kinds of devices, balanced
//   recompute      each policy
//
// The order is always the same. Layouts with same_work() are neighbours. Among these, layouts that differ only in ZeRO
// are neighbours.
std::vector<LayoutPoint> layout_space(const SpaceRequest& request);

}  // namespace braid::plan
