// Balances the times of the model's parts on each kind of device.
#include "braid/plan/balanced_partition.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/partition.h"
#include "braid/plan/rank_shards.h"
#include "braid/plan/stage_passes.h"
#include "braid/schedule/generators.h"
#include "braid/spec/batch_shares.h"
#include "braid/spec/partition.h"

namespace braid::plan {
namespace {

// Returns, for each worker, its exact fraction of the units rounded down, but at least 1. An optimal distribution never
// needs to give a worker less. Returns 1 for each if these would be more than `num_units` together.
std::vector<int> least_units(const std::vector<double>& seconds, int num_units) {
  double rate = 0;
  for (const double one : seconds) rate += 1 / one;
  std::vector<int> units;
  for (const double one : seconds) units.push_back(std::max(static_cast<int>(num_units / (rate * one)), 1));
  const bool too_many = std::accumulate(units.begin(), units.end(), int64_t{0}) > num_units;
  return too_many ? std::vector<int>(seconds.size(), 1) : units;
}

}  // namespace

std::vector<int> balanced_units(const std::vector<double>& seconds, int num_units) {
  check(!seconds.empty() && num_units >= std::ssize(seconds), "there is a unit for everybody");
  std::vector<int> units = least_units(seconds, num_units);
  using Done = std::pair<double, size_t>;  // finish time with one unit more, and the worker
  std::priority_queue<Done, std::vector<Done>, std::greater<>> next;
  const auto wait_for = [&](size_t who) { next.emplace((units[who] + 1) * seconds[who], who); };
  for (size_t who = 0; who < seconds.size(); ++who) wait_for(who);
  for (int left = num_units - std::accumulate(units.begin(), units.end(), 0); left > 0; --left) {
    const size_t who = next.top().second;
    next.pop();
    ++units[who];
    wait_for(who);
  }
  return units;
}

std::string balanced_shares(const std::vector<double>& seconds, std::string_view schedule, ScheduleRequest step) {
  const int all = step.microbatches;
  for (const int unit : {1, step.ranks}) {  // some schedules accept only multiples of their ranks
    if (all % unit != 0 || all / unit < std::ssize(seconds)) continue;
    const std::vector<int> units = balanced_units(seconds, all / unit);
    const auto is_taken = [&](int count) {
      step.microbatches = count * unit;
      return schedule_problems(schedule, step).empty();
    };
    if (std::ranges::all_of(units, is_taken)) return spec::shares_text(units);
  }
  return kEqualShares;
}

namespace {

// The times of the model's parts on one kind of device.
struct PartSeconds {
  double embedding = 0, head = 0;
  std::vector<double> parts;  // of blocks: those of ModelAccount
};

// Returns the times of the parts on each kind of device.
std::vector<PartSeconds> part_seconds(const RunSpec& spec, RunLayout layout, const Cluster& cluster,
                                      FormulaSet formulas) {
  const spec::Recompute recompute = layout.stages[0].recompute;
  const size_t num_parts = layout.account->parts.size();
  layout.stages.clear();
  for (size_t kind = 0; kind < cluster.devices.size(); ++kind) {
    layout.stages.push_back({.embedding = true, .recompute = recompute, .devices = kind});
    layout.stages.push_back({.head = true, .recompute = recompute, .devices = kind});
    for (size_t part = 0; part < num_parts; ++part) {
      StageLoad load{.parts = std::vector<double>(num_parts), .recompute = recompute, .devices = kind};
      load.parts[part] = 1;
      layout.stages.push_back(std::move(load));
    }
  }
  const std::vector<StagePasses> passes = stage_passes(spec, layout, cluster, formulas);
  std::vector<PartSeconds> all;
  for (size_t i = 0; i < passes.size(); i += 2 + num_parts) {
    PartSeconds& kind = all.emplace_back(PartSeconds{passes[i].all().total(), passes[i + 1].all().total()});
    for (size_t part = 0; part < num_parts; ++part) kind.parts.push_back(passes[i + 2 + part].all().total());
  }
  return all;
}

double block_seconds(const layout::ModelAccount& account, const PartSeconds& seconds, int layer) {
  return layers_load(account, layer, layer + 1).of_parts([&](size_t part) { return seconds.parts[part]; });
}

constexpr double kRounding = 1 - 1e-9;  // tolerance for sums in another order

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

// Returns the partition of a model with several kinds of layers. A unit costs on a rank what it costs on the first kind
// of device, divided by the rank's speed, which is that of a whole model.
std::string unequal_partition(const RunSpec& spec, const RunLayout& layout, const std::vector<PartSeconds>& kinds) {
  const layout::ModelAccount& account = *layout.account;
  const schedule::StagePlacement placement = spec::traits_of(spec.pipeline)->placement;
  const auto model_seconds = [&](const PartSeconds& seconds) {
    double sum = seconds.embedding + seconds.head;
    for (int layer = 0; layer < spec.model.layers; ++layer) sum += block_seconds(account, seconds, layer);
    return sum;
  };
  PartitionRequest request;
  request.units.push_back({.name = "embedding", .forward = kinds[0].embedding});
  for (int layer = 0; layer < spec.model.layers; ++layer) {
    for (size_t part = 0; part < account.parts_of_layer(); ++part) {
      request.units.push_back({.name = cat("blocks.", layer), .forward = kinds[0].parts[account.part_of(layer, part)]});
    }
  }
  request.units.push_back({.name = "head", .forward = kinds[0].head});
  request.speeds.resize(layout.pipe, 1);
  for (int stage = 0; stage < std::ssize(layout.stages); ++stage) {
    const int rank = schedule::owner_of_stage(placement, layout.pipe, stage);
    const bool mirrored = placement == schedule::StagePlacement::Mirrored;
    request.holders.push_back({.stage = stage, .rank = rank, .share = mirrored ? 0.5 : 1});
    if (mirrored) request.holders.push_back({.stage = stage, .rank = layout.pipe - 1 - rank, .share = 0.5});
    request.speeds[rank] = model_seconds(kinds[0]) / model_seconds(kinds[layout.stages[stage].devices]);
  }
  return spec::partition_text(spec.model, partition_units(request).first_unit);
}

}  // namespace

std::string balanced_partition(const RunSpec& spec, const Cluster& cluster, FormulaSet formulas, AccountPtr account) {
  const Cluster seen = with_cores_of_ranks(cluster, spec);
  const RunLayout layout = layout_of(spec, seen, formulas, std::move(account));
  const std::vector<PartSeconds> kinds = part_seconds(spec, layout, seen, formulas);
  if (layout.account->num_kinds() > 1) return unequal_partition(spec, layout, kinds);
  const schedule::StagePlacement placement = spec::traits_of(spec.pipeline)->placement;
  std::vector<BlockStage> stages;
  std::vector<double> even;
  for (const StageLoad& load : layout.stages) {
    const PartSeconds& seconds = kinds[load.devices];
    int rank = schedule::owner_of_stage(placement, layout.pipe, static_cast<int>(stages.size()));
    // A mirrored stage and its counterpart are on the same two ranks. Each rank does half of the work of both.
    if (placement == schedule::StagePlacement::Mirrored) rank = std::min(rank, layout.pipe - 1 - rank);
    const double ends = (load.embedding ? seconds.embedding : 0) + (load.head ? seconds.head : 0);
    stages.push_back({rank, block_seconds(*layout.account, seconds, 0), ends});
    even.push_back(load.blocks);
  }
  const std::vector<double> blocks = cut_equal_blocks(stages, spec.model.layers);
  return slowest_rank(stages, blocks) < kRounding * slowest_rank(stages, even) ? text_of(blocks) : "even";
}

}  // namespace braid::plan
