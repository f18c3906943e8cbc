// Times of recomputation are differences of predicted passes.
#include "braid/plan/stage_options.h"

#include <algorithm>

#include "braid/plan/braid_memory.h"
#include "braid/plan/stage_chain.h"
#include "braid/plan/stage_passes.h"
#include "braid/plan/step_moves.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

using Keeps = spec::Recompute::Keeps;

// Returns the seconds that the policy adds to the passes of each of ModelAccount::parts.
std::vector<double> added_seconds(const PlannedRun& run, size_t devices, const spec::Recompute& policy) {
  RunLayout layout = run.layout;
  layout.stages.clear();
  const size_t num_parts = layout.account->parts.size();
  for (size_t part = 0; part < num_parts; ++part) {
    StageLoad load{.parts = std::vector<double>(num_parts), .devices = devices};
    load.parts[part] = 1;
    layout.stages.push_back(load);
    load.recompute = policy;
    layout.stages.push_back(std::move(load));
  }
  const std::vector<StagePasses> passes = stage_passes(run.spec, layout, run.cluster, run.formulas);
  std::vector<double> added;
  for (size_t i = 0; i < passes.size(); i += 2) added.push_back(passes[i + 1].all().total() - passes[i].all().total());
  return added;
}

// Returns the times of moving a stage's activations.
MoveTimes move_times(const PlannedRun& run, int stage) {
  const Tier tier = run.spec.memory.activations;
  const StagePasses passes = stage_passes(run.spec, run.layout, run.cluster, run.formulas)[stage];
  return {.write = move_seconds(run, tier, {.written = 1}),
          .read = move_seconds(run, tier, {.read = 1}),
          .copy = copy_seconds(run, run.layout.stages[stage].devices, {.read = 1, .written = 1}),
          .forward = passes.forward.total(),
          .backward = passes.input_grad.total() + passes.weight_grad.total()};
}

// Leaves the options that no other one beats in both time and bytes, the fastest first.
void leave_best(std::vector<StageOption>& options) {
  std::ranges::stable_sort(options, [](const StageOption& a, const StageOption& b) {
    return a.seconds < b.seconds || (a.seconds == b.seconds && a.bytes < b.bytes);
  });
  std::vector<StageOption> best;
  for (StageOption& option : options) {
    if (best.empty() || option.bytes < best.back().bytes) best.push_back(std::move(option));
  }
  options = std::move(best);
}

// Returns the stage's load with its blocks in order.
StageLoad ordered_load(const PlannedRun& run, int stage) {
  StageLoad load = run.layout.stages[stage];
  const std::vector<int> units = spec::stage_units(run.spec, static_cast<int>(run.layout.stages.size()));
  const int head = units.back() - 1;
  load.order = placed_blocks(*run.layout.account, std::max(units[stage], 1) - 1, std::min(units[stage + 1], head) - 1);
  return load;
}

}  // namespace

RecomputeChain timed_chain(const PlannedRun& run, int stage) {
  StageLoad load = ordered_load(run, stage);
  const bool may_move = !is_resident(run.spec.memory.activations);
  if (may_move) load.on_tier = static_cast<int>(load.order.size());
  RecomputeChain chain = stage_chain(run, {run.spec, run.layout}, load);
  const std::vector<double> full = added_seconds(run, load.devices, {Keeps::SegmentInputs, 1});
  for (size_t i = 0; i < chain.blocks.size(); ++i) {
    const PlacedBlock& block = load.order[static_cast<size_t>(chain.first) + i];
    for (size_t part = block.first; part < block.last; ++part) chain.blocks[i].seconds += full[part];
  }
  if (may_move) chain.moves = move_times(run, stage);
  return chain;
}

std::vector<StageOption> stage_options(const PlannedRun& run, int stage, int in_flight) {
  const ActivationBytes tensors(run.spec, run.layout);
  StageLoad load = ordered_load(run, stage);
  const double constant = constant_bytes(run.spec, run.layout, load);
  std::vector<StageOption> options;
  const int num_blocks = static_cast<int>(load.order.size());
  for (const ChainChoice& choice : best_choices(timed_chain(run, stage))) {
    options.push_back({choice.memory.peak(in_flight) + constant,
                       choice.seconds,
                       {spec::recompute_text(choice.segments, num_blocks)},
                       {choice.on_tier}});
  }
  const std::vector<double> selective = added_seconds(run, load.devices, {Keeps::Selected, 0});
  load.recompute = {Keeps::Selected, 0};
  options.push_back({in_flight * kept_bytes(tensors, load) + working_most_bytes(run, tensors, load) + constant,
                     load.of_parts([&](size_t part) { return selective[part]; }),
                     {"selective"},
                     {0}});
  leave_best(options);
  return options;
}

std::vector<StageOption> together(const std::vector<StageOption>& some, const std::vector<StageOption>& others) {
  std::vector<StageOption> both;
  for (const StageOption& one : some) {
    for (const StageOption& other : others) {
      StageOption& sum = both.emplace_back(one);
      sum.bytes += other.bytes;
      sum.seconds += other.seconds;
      sum.entries.insert(sum.entries.end(), other.entries.begin(), other.entries.end());
      sum.on_tier.insert(sum.on_tier.end(), other.on_tier.begin(), other.on_tier.end());
    }
  }
  leave_best(both);
  return both;
}

}  // namespace braid::plan
