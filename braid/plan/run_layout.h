// A run's ranks on a cluster: sizes of the axes, groups of ranks and how many of each are on a node, microbatches, and
// the part of the model that each stage holds.
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
#include "braid/schedule/schedule.h"
#include "braid/spec/recompute.h"
#include "braid/spec/run_spec.h"

namespace braid::plan {

inline constexpr int kBraidAlignment = 1024;  // alignment of parameters, in elements: ParamStore::kAlign

// A transformer block of a stage, or the parts of one that a cut leaves there: ModelAccount::parts [first, last).
struct PlacedBlock {
  size_t first = 0, last = 0;
  bool operator==(const PlacedBlock&) const = default;
};

// The part of the model that a pipeline stage holds. A cut may divide a block into its parts, such as attention and
// feed-forward layer.
struct StageLoad {
  double blocks = 0;          // number of blocks; one of two parts counts 0.5
  std::vector<double> parts;  // the number of each of ModelAccount::parts
  int last_kind = 0;          // kind of the last layer
  bool embedding = false;
  bool head = false;
  spec::Recompute recompute;
  int on_tier = 0;                 // the first blocks, whose activations are on a tier
  std::vector<PlacedBlock> order;  // its blocks in order, if `recompute` is by segments or blocks are on a tier
  size_t devices = 0;              // kind: index into Cluster::devices; the slowest if replicas are on several kinds
  StageBackward backward = StageBackward::Whole;

  // Returns the sum of a quantity over all parts of blocks, given its value for each of ModelAccount::parts.
  template <class Quantity>
  double of_parts(const Quantity& of_part) const {
    double sum = 0;
    for (size_t part = 0; part < parts.size(); ++part) sum += parts[part] * of_part(part);
    return sum;
  }
  bool operator==(const StageLoad&) const = default;
};

using AccountPtr = std::shared_ptr<const layout::ModelAccount>;

struct RunLayout {
  int pipe = 1, data = 1, context = 1, expert = 1, tensor = 1;
  int chunks = 1;               // stages of each pipeline rank (virtual stages)
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
  int copies_in_pipe = 1;           // replicas of a stage within a pipeline: 2 under a mirrored schedule (DualPipe)
  RankGroup gradient_group;         // replicas of a parameter: copies_in_pipe x data x context x expert
  RankGroup expert_gradient_group;  // replicas of an expert's parameter: copies_in_pipe x data x context

  int num_ranks() const { return pipe * data * context * expert * tensor; }
};

// Returns the load of the layers `begin` to `end`, not included, without embedding and head.
StageLoad layers_load(const layout::ModelAccount& account, int begin, int end);

// Returns the blocks of the units `begin` to `end`, not included, of those between embedding and head.
std::vector<PlacedBlock> placed_blocks(const layout::ModelAccount& account, int begin, int end);

// The blocks that a stage recomputes by a list ("blocks:LIST"); all are 0 if it has none.
struct ListedCounts {
  double blocks = 0, segments = 0, longest = 0;  // longest: blocks of the longest segment
};
ListedCounts listed_counts(const StageLoad& load);

// Returns the account of the run's model, with its frozen parameters.
AccountPtr account_of(const RunSpec& spec);

// Sets the account of the run's model, and the extents that follow from it and from the layout's ranks.
void set_account(AccountPtr account, const MeshSpec& mesh, RunLayout& layout);

// Lays a run out on a cluster. For FormulaSet::Braid the axes from inner (neighbouring ranks) to outer are tensor,
// context, pipe, expert, data (mesh/device_mesh.h). For all other formula sets they are Megatron-LM's: tensor, context,
// expert, data, pipe. `account` is that of the run's model; null: it is counted anew. REQUIRES: problems() finds none
// in `spec` for Purpose::Plan, and its model.vocab is known.
RunLayout layout_of(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account = nullptr);

// The layouts of single data ranks, each with its own number of microbatches and its own kinds of devices. Data ranks
// that are equal in both share one layout.
struct ReplicaLayouts {
  std::vector<RunLayout> each;
  std::vector<size_t> of_data_rank;  // index into `each` by data rank; empty: all are equal
};
ReplicaLayouts replica_layouts(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                               AccountPtr account = nullptr);

// Returns layout_of() with the whole model on one stage and without alignment of parameters. The stage has the
// recompute policy of the run's stages, or "none" if they differ. The axes and groups stay those of the run.
RunLayout layout_on_one_stage(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas,
                              AccountPtr account = nullptr);

// Returns the most ranks that share the cores of a node, parameter servers included.
int ranks_of_node(const RunSpec& spec, const Cluster& cluster);

// Returns the rates of each kind of device for the run's train.dtype.
std::vector<DeviceRates> rates_of(const RunSpec& spec, const Cluster& cluster);

// The arguments that most predictions share. All objects that it refers to outlive it.
struct PlannedRun {
  const RunSpec& spec;
  const Cluster& cluster;
  FormulaSet formulas;
  const RunLayout& layout;
  const std::vector<DeviceRates>& rates;  // rates_of(): by kind of device
};

}  // namespace braid::plan
