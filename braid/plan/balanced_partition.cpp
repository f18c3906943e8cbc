// Seconds of the model's parts on each kind of devices, shared out.
#include "braid/plan/balanced_partition.h"

#include <algorithm>

#include "braid/base/text.h"
#include "braid/plan/cores_of_ranks.h"
#include "braid/plan/equal_blocks.h"
#include "braid/plan/stage_passes.h"
#include "braid/spec/pipeline_stages.h"

namespace braid::plan {
namespace {

struct PartSeconds {
  double block = 0, embedding = 0, head = 0;
};

// On each kind of devices.
std::vector<PartSeconds> part_seconds(const RunSpec& spec, RunLayout layout, const Cluster& cluster,
                                      FormulaSet formulas) {
  const spec::Recompute recompute = layout.stages[0].recompute;
  layout.stages.clear();
  for (size_t kind = 0; kind < cluster.devices.size(); ++kind) {
    layout.stages.push_back({.blocks = 1, .recompute = recompute, .devices = kind});
    layout.stages.push_back({.embedding = true, .recompute = recompute, .devices = kind});
    layout.stages.push_back({.head = true, .recompute = recompute, .devices = kind});
  }
  const std::vector<StagePasses> passes = stage_passes(spec, layout, cluster, formulas);
  std::vector<PartSeconds> all;
  for (size_t i = 0; i < passes.size(); i += 3) {
    all.push_back({passes[i].all().total(), passes[i + 1].all().total(), passes[i + 2].all().total()});
  }
  return all;
}

constexpr double kRounding = 1 - 1e-9;  // of sums in another order

double slowest_rank(const std::vector<BlockStage>& stages, const std::vector<double>& blocks) {
  std::vector<double> seconds(stages.size());
  for (size_t i = 0; i < stages.size(); ++i) {
    seconds[stages[i].rank] += stages[i].end_seconds + blocks[i] * stages[i].block_seconds;
  }
  return std::ranges::max(seconds);
}

std::string text_of(const std::vector<double>& blocks) {
  std::vector<std::string> words;
  for (const double count : blocks) words.push_back(exact(count));
  return joined(words, ",");
}

}  // namespace

std::string balanced_partition(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  const RunLayout layout = layout_of(spec, seen, formulas);
  const std::vector<PartSeconds> kinds = part_seconds(spec, layout, seen, formulas);
  const schedule::StagePlacement placement = spec::traits_of(spec.pipeline)->placement;
  std::vector<BlockStage> stages;
  std::vector<double> even;
  for (const StageLoad& load : layout.stages) {
    const PartSeconds& seconds = kinds[load.devices];
    int rank = schedule::owner_of_stage(placement, layout.pipe, static_cast<int>(stages.size()));
    // Two ranks share a mirrored stage and its counterpart, half of each.
    if (placement == schedule::StagePlacement::Mirrored) rank = std::min(rank, layout.pipe - 1 - rank);
    const double ends = (load.embedding ? seconds.embedding : 0) + (load.head ? seconds.head : 0);
    stages.push_back({rank, seconds.block, ends});
    even.push_back(load.blocks);
  }
  const std::vector<double> blocks = cut_equal_blocks(stages, spec.model.layers);
  return slowest_rank(stages, blocks) < kRounding * slowest_rank(stages, even) ? text_of(blocks) : "even";
}

}  // namespace braid::plan
