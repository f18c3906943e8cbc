// A run's ranks on a cluster: sizes of the axes, groups that share a node, microbatches, the load of each stage.
#pragma once

#include <memory>
#include <vector>

#include "braid/layout/account.h"
#include "braid/mesh/device_mesh.h"
#include "braid/model/dims.h"
#include "braid/plan/cluster.h"
#include "braid/plan/collectives.h"
#include "braid/plan/device_rates.h"
#include "braid/plan/formula_set.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

inline constexpr int kBraidAlignment = 1024;  // alignment of parameters, in elements: ParamStore::kAlign

// The part of the model that a pipeline stage holds.
struct StageLoad {
  double blocks = 0;
  int more_feeds = 0;  // feed-forward halves minus attention halves: 1 or -1 if a cut divides a block
  bool embedding = false;
  bool head = false;
  spec::Recompute recompute;
  size_t devices = 0;  // index into Cluster::devices; if copies are on several kinds, the slowest

  // Returns the sum over all blocks, given the value of one attention half and of one feed-forward half.
  double of_blocks(double attention, double feed) const {
    return blocks * (attention + feed) + more_feeds / 2.0 * (feed - attention);
  }
  bool operator==(const StageLoad&) const = default;
};

using AccountPtr = std::shared_ptr<const layout::ModelAccount>;

struct RunLayout {
  int pipe = 1, data = 1, context = 1, expert = 1, tensor = 1;
  int chunks = 1;               // stages of each pipeline rank
  int microbatches = 1;         // microbatches of a rank in a step; with unequal batch shares the most of any data rank
  double tokens = 0;            // tokens of a microbatch on one rank
  int64_t vocab = 0;            // vocabulary with padding
  int aligned_to = 1;           // alignment of parameters in memory, in elements
  AccountPtr account;           // of the run's model
  layout::RankExtents extents;  // of its letters on one rank, for a microbatch
  std::vector<StageLoad> stages;
  int most_of_node = 1;  // the most ranks on a node

  // Groups are computed as if every node had as many ranks as the node with the fewest.
  RankGroup all_ranks, tensor_group, context_group, expert_group, pipe_group;
  int copies_in_pipe = 1;           // copies of a stage in a pipeline: 2 under a mirrored schedule
  RankGroup gradient_group;         // ranks with copies of a parameter: copies_in_pipe x data x context x expert
  RankGroup expert_gradient_group;  // ranks with copies of an expert's parameters: copies_in_pipe x data x context

  int num_ranks() const { return pipe * data * context * expert * tensor; }
};

// Sets the account of the run's model, and the extents that follow from it and from the layout's ranks.
void set_account(AccountPtr account, const MeshSpec& mesh, RunLayout& layout);

// Lays a run out on a cluster. The axes from inner (neighbouring ranks) to outer are tensor, context, pipe, expert,
// data in braid's mesh (mesh/device_mesh.h). In all other formula sets they are Megatron-LM's: tensor, context, expert,
// data, pipe. `account` is that of the
// run's model; null: it is counted anew. REQUIRES: `spec` has no problems for a plan, and its vocabulary is resolved.
RunLayout layout_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account = nullptr);

// The layout of each data rank by itself, with its own microbatches on its own devices. Replicas that are alike in both
// share one layout.
struct ReplicaLayouts {
  std::vector<RunLayout> each;
  std::vector<size_t> of_data_rank;  // index into `each` by data rank; empty: all are alike
};
ReplicaLayouts replica_layouts(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                               AccountPtr account = nullptr);

// Returns layout_of() with the whole model on one stage and without alignment of parameters. Its blocks recompute what
// all stages of the run recompute, or nothing if stages differ in that. Groups of ranks stay those of the run.
RunLayout layout_on_one_stage(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                              AccountPtr account = nullptr);

// Returns the rates of each kind of device, in the type of the run.
std::vector<DeviceRates> rates_of(const RunSpec& spec, const Cluster& cluster);

// A run laid out on a cluster. All objects that it refers to outlive it.
struct PlannedRun {
  const RunSpec& spec;
  const Cluster& cluster;
  FormulaSet formulas;
  const RunLayout& layout;
  const std::vector<DeviceRates>& rates;  // rates of each kind of devices
};

}  // namespace braid::plan
