// A run's ranks on a cluster: sizes of the axes, which groups share a node, microbatches, what each stage holds.
#pragma once

#include <vector>

#include "braid/mesh/device_mesh.h"
#include "braid/plan/cluster.h"
#include "braid/plan/collectives.h"
#include "braid/plan/device_rates.h"
#include "braid/plan/formula_set.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

inline constexpr int kBraidAlignment = 1024;  // of parameters, in elements: ParamStore::kAlign

// The part of the model that a pipeline stage holds.
struct StageLoad {
  double blocks = 0;
  int more_feeds = 0;  // feed-forward halves than attention halves: 1 or -1 where a cut goes through a block
  bool embedding = false;
  bool head = false;
  spec::Recompute recompute;
  size_t devices = 0;  // the kind of the cluster that it runs on; of its copies' several the slowest

  // Returns the sum over all blocks, given the value of a half of each sort.
  double of_blocks(double attention, double feed) const {
    return blocks * (attention + feed) + more_feeds / 2.0 * (feed - attention);
  }
  bool operator==(const StageLoad&) const = default;
};

struct RunLayout {
  int pipe = 1, data = 1, context = 1, expert = 1, tensor = 1;
  int chunks = 1;        // stages of a pipeline rank
  int microbatches = 1;  // of a rank in a step; of data ranks with unequal shares the most
  double tokens = 0;     // of a microbatch on one rank
  int64_t vocab = 0;     // padded
  int aligned_to = 1;    // elements that a parameter's place in memory is a multiple of
  std::vector<StageLoad> stages;
  int most_of_node = 1;  // ranks on a node

  // Nodes are counted as if all had as many ranks as the one with the fewest.
  RankGroup all_ranks, tensor_group, context_group, expert_group, pipe_group;
  int copies_in_pipe = 1;           // of a stage: 2 under a mirrored schedule
  RankGroup gradient_group;         // holds copies of a parameter: those, x data x context x expert
  RankGroup expert_gradient_group;  // of an expert's: those, x data x context

  int num_ranks() const { return pipe * data * context * expert * tensor; }
};

// Neighbours, from inner to outer: tensor, context, pipe, expert, data in braid's mesh (mesh/device_mesh.h); tensor,
// context, expert, data, pipe in Megatron-LM's. `spec` has no problems for a plan, and its vocabulary is resolved.
RunLayout layout_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

// The same for each data rank by itself: its microbatches, on its devices. Of replicas that are alike in both there is
// one.
struct ReplicaLayouts {
  std::vector<RunLayout> each;
  std::vector<size_t> of_data_rank;  // their places in `each`; empty where all are alike
};
ReplicaLayouts replica_layouts(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

// layout_of() with all of the model on one stage, whose blocks do again what all stages of the run do, or nothing where
// these differ. Groups of ranks stay those of the run.
RunLayout layout_on_one_stage(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas);

// Returns the rates of each kind of device, in the type of the run.
std::vector<DeviceRates> rates_of(const RunSpec& spec, const Cluster& cluster);

// A run laid out on a cluster, all of which outlive it.
struct PlannedRun {
  const RunSpec& spec;
  const Cluster& cluster;
  FormulaSet formulas;
  const RunLayout& layout;
  const std::vector<DeviceRates>& rates;  // of each kind of devices
};

}  // namespace braid::plan
