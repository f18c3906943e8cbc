// Predicts the run with all ranks along each axis in turn.
#include "braid/plan/parallelism_table.h"

#include <algorithm>

#include "braid/model/shape.h"
#include "braid/plan/block_work.h"
#include "braid/plan/model_states.h"
#include "braid/spec/problems.h"
#include "braid/spec/recompute.h"

namespace braid::plan {
namespace {

// Returns the run with one rank on each axis. Lists with an entry for each stage or rank are reset, because they fit
// only the run's own number of them.
RunSpec on_one_rank(RunSpec run) {
  run.mesh = {};
  run.pipeline = {};
  run.sync = {};
  run.run.placement = RunSpec().run.placement;
  if (spec::recompute_entries(run.memory).size() > 1) run.memory.recompute = RunSpec().memory.recompute;
  return run;
}

StageParameters all_parameters(const RunSpec& run, const Cluster& cluster) {
  const RunLayout layout = layout_of(on_one_rank(run), cluster, FormulaSet::Braid);
  return stage_parameters(run, layout, layout.stages[0]);
}

bool is_possible(const RunSpec& spec, const Cluster& cluster) {
  return !spec::has_problems(spec, spec::any_hosts(spec::Purpose::Plan)) &&
         prediction_problems(spec, cluster).empty() && mesh_problems(spec, cluster).empty();
}

// The quantities that determine the bytes of a step. `gathered` is of both passes of a microbatch under ZeRO 3.
struct StepBytes {
  double parameters, gathered, shared, element, gradient, batch_of_microbatches, passed, layers, branches;
};

struct Way {
  const char *name, *copied, *split, *when, *growth;
  void (*spread)(RunSpec& on_one_rank, int ranks);
  double (*sent)(const StepBytes& of, double ranks);
};

double share_of_others(double ranks) { return (ranks - 1) / ranks; }

constexpr Way kWays[] = {
    {"data", "the model", "the batch", "gradients, once a step", "hardly: 2 (n-1)/n",
     [](RunSpec& run, int n) { run.mesh.data = n; },
     [](const StepBytes& of, double n) { return 2 * share_of_others(n) * of.gradient * of.parameters; }},
    {"data, ZeRO 3", "nothing", "the model and the batch", "for each microbatch weights twice, gradients once",
     "less, with fewer microbatches of a rank", [](RunSpec& run, int n) { run.mesh.data = n, run.sync.zero = 3; },
     [](const StepBytes& of, double n) {
       const double microbatches = std::max(1.0, of.batch_of_microbatches / n);
       return microbatches * share_of_others(n) * (of.gathered * of.element + of.parameters * of.gradient);
     }},
    {"tensor", "the batch, norms", "every matrix", "activations, four times in each block", "hardly: 2 (n-1)/n",
     [](RunSpec& run, int n) { run.mesh.tensor = n; },
     [](const StepBytes& of, double n) { return 4 * of.layers * of.passed * 2 * share_of_others(n); }},
    {"pipe", "the batch", "the blocks", "activations between two stages, in both directions", "not at all",
     [](RunSpec& run, int n) { run.mesh.pipe = n; }, [](const StepBytes& of, double) { return 2 * of.passed; }},
    {"expert", "all but experts", "the experts and the batch",
     "tokens on their way to experts and back, four times in each block; gradients of what is copied, once a step",
     "hardly, where tokens are few; less, where they are many", [](RunSpec& run, int n) { run.mesh.expert = n; },
     [](const StepBytes& of, double n) {
       const double routed = 4 * of.layers * of.branches * of.passed / n;
       return share_of_others(n) * (routed + 2 * of.gradient * of.shared);
     }},
};

}  // namespace

std::vector<ParallelismRow> parallelism_table(const RunSpec& run, const Cluster& cluster, int ranks) {
  const double element = element_bytes(run.train.dtype);
  const double gradient = state_bytes(run.train.dtype, FormulaSet::Braid, {.count = 1}).gradients;
  const StageParameters parameters = all_parameters(run, cluster);
  const double forward_only = parameters.shared.forward_only + parameters.experts.forward_only;
  const StepBytes sizes{parameters.count(),
                        2 * parameters.all() - forward_only,
                        parameters.shared.count,
                        element,
                        gradient,
                        1.0 * run.train.batch / run.train.microbatch,
                        element * run.train.batch * run.model.context * run.model.width,
                        1.0 * run.model.layers,
                        1.0 * model::branches_per_token(run.model)};
  std::vector<ParallelismRow> rows;
  for (const auto& [name, copied, split, when, growth, spread, sent] : kWays) {
    RunSpec spec = on_one_rank(run);
    spread(spec, ranks);
    if (spec.mesh.expert > 1 && run.model.experts == 0) continue;
    ParallelismRow row{name, copied, split, when, growth, sent(sizes, ranks), sent(sizes, 2.0 * ranks)};
    row.possible = is_possible(spec, cluster);
    if (row.possible) row.prediction = predict_run(spec, cluster);
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace braid::plan
