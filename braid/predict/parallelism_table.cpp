#include "braid/predict/parallelism_table.h"

#include <algorithm>
#include <limits>

#include "braid/predict/block_work.h"
#include "braid/predict/model_states.h"
#include "braid/spec/problems.h"

namespace braid {
namespace {

constexpr double kGradientBytes = 4;  // of an element, whatever the weights are

// The run on one rank of each axis.
RunSpec on_one_rank(RunSpec run) {
  run.mesh = {};
  run.pipeline = {};
  run.sync = {};
  return run;
}

double num_parameters(const RunSpec& run, const Cluster& cluster) {
  const RunLayout layout = layout_of(on_one_rank(run), cluster, FormulaSet::Braid);
  return stage_parameters(run, layout, layout.stages[0]);
}

bool is_possible(const RunSpec& spec, const Cluster& cluster) {
  const HostLimits any{.max_ranks = std::numeric_limits<int>::max(), .purpose = Purpose::Plan};
  return !has_problems(spec, any) && prediction_problems(spec, cluster).empty() && mesh_problems(spec, cluster).empty();
}

}  // namespace

std::vector<ParallelismRow> parallelism_table(const RunSpec& run, const Cluster& cluster, int ranks) {
  const double others = (ranks - 1.0) / ranks, element = element_bytes(run.train.dtype);
  const double parameters = num_parameters(run, cluster);
  const double microbatches = std::max(1.0, 1.0 * run.train.batch / run.train.microbatch / ranks);
  const double passed = element * run.train.batch * run.model.context * run.model.width;
  std::vector<ParallelismRow> rows = {
      {"data", "the model", "the batch", "gradients, once a step", "hardly: 2 (n-1)/n",
       2 * others * kGradientBytes * parameters},
      {"data, ZeRO 3", "nothing", "the model and the batch", "for each microbatch weights twice, gradients once",
       "falls with the microbatches of a rank", microbatches * others * parameters * (2 * element + kGradientBytes)},
      {"tensor", "the batch, norms", "every matrix", "activations, four times in each block", "hardly: 2 (n-1)/n",
       4 * run.model.layers * passed * 2 * others},
      {"pipe", "the batch", "the blocks", "activations between two stages, there and back", "not at all", 2 * passed},
  };
  for (ParallelismRow& row : rows) {
    RunSpec spec = on_one_rank(run);
    if (row.name == "tensor") spec.mesh.tensor = ranks;
    if (row.name == "pipe") spec.mesh.pipe = ranks;
    if (row.name.starts_with("data")) spec.mesh.data = ranks;
    if (row.name == "data, ZeRO 3") spec.sync.zero = 3;
    row.possible = is_possible(spec, cluster);
    if (row.possible) row.prediction = predict_run(spec, cluster);
  }
  return rows;
}

}  // namespace braid
