// Minimizes one criterion after another, each within the values that the earlier ones have reached.
#include "braid/plan/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <queue>

#include "braid/base/errors.h"
#include "braid/base/text.h"
#include "braid/plan/cut_search.h"
#include "braid/plan/stage_costs.h"

namespace braid::plan {

namespace {

struct RankLoad {
  double seconds = 0, half_seconds = 0;
  std::vector<size_t> stages;
};

}  // namespace

// Gives half a block at a time to the rank that would finish it first. No other rank would finish it earlier, so no
// exchange of halves makes the slowest rank faster.
std::vector<double> cut_equal_blocks(const std::vector<BlockStage>& stages, int num_blocks) {
  std::vector<double> blocks, seconds;  // by stage
  std::vector<RankLoad> ranks;
  int left = 2 * num_blocks;
  for (const BlockStage& stage : stages) {
    const int halves = stage.end_seconds > 0 ? 0 : 1;
    left -= halves;
    blocks.push_back(halves / 2.0);
    seconds.push_back(stage.end_seconds + blocks.back() * stage.block_seconds);
    if (stage.rank >= std::ssize(ranks)) ranks.resize(stage.rank + 1);
    RankLoad& load = ranks[stage.rank];
    load.seconds += seconds.back();
    load.half_seconds = stage.block_seconds / 2;
    load.stages.push_back(blocks.size() - 1);
  }
  check(left >= 0, "every stage has a part of the model");
  // The time at which a rank would finish half a block more, and the negated rank.
  using End = std::pair<double, int>;
  std::priority_queue<End, std::vector<End>, std::greater<>> next;
  const auto queue = [&](int rank) { next.emplace(ranks[rank].seconds + ranks[rank].half_seconds, -rank); };
  for (int rank = 0; rank < std::ssize(ranks); ++rank) queue(rank);
  for (; left > 0; --left) {
    const int rank = -next.top().second;
    next.pop();
    RankLoad& load = ranks[rank];
    const size_t shortest = *std::ranges::min_element(load.stages, {}, [&](size_t stage) { return seconds[stage]; });
    blocks[shortest] += 0.5;
    seconds[shortest] += load.half_seconds;
    load.seconds += load.half_seconds;
    queue(rank);
  }
  return blocks;
}

namespace {

constexpr int kShifts[] = {-1, 1, -2, 2, -4, 4, -8, 8};

// Returns the cuts with [first, last] moved by `shift`; nothing if a stage would be empty.
std::vector<int> moved(std::vector<int> cuts, int first, int last, int shift) {
  for (int cut = first; cut <= last; ++cut) cuts[cut] += shift;
  const bool filled = cuts[first - 1] < cuts[first] && cuts[last] < cuts[last + 1];
  return filled ? cuts : std::vector<int>();
}

// Improves cuts by local search, for spaces that are too large for the exact search. Moves one cut, or several
// neighbouring cuts together, by a few units as long as the score improves. Deterministic.
std::vector<int> improved_cuts(const StageCosts& costs, std::vector<int> first_unit, int64_t limit_bytes) {
  Score best = score(costs.partition(first_unit), limit_bytes);
  const int last_cut = costs.num_stages() - 1;
  bool improved = true;
  const auto try_move = [&](int first, int last, int shift) {
    const auto cuts = moved(first_unit, first, last, shift);
    if (cuts.empty()) return;
    const Score now = score(costs.partition(cuts), limit_bytes);
    if (!(now < best)) return;
    best = now;
    first_unit = cuts;
    improved = true;
  };
  while (improved) {
    improved = false;
    for (int first = 1; first <= last_cut; ++first) {
      for (int last = first; last <= last_cut; ++last) {
        for (const int shift : kShifts) try_move(first, last, shift);
      }
    }
  }
  return first_unit;
}

using End = CutSearch::End;

constexpr double kGibi = 1024.0 * 1024 * 1024;
constexpr double kSumTolerance = 1 + 1e-9;  // tolerance for sums of the same stages in another order

// Returns the best cuts if each stage had a rank of its own and memory had no limit. The search for better ones starts
// here.
std::vector<int> balanced_stages(PartitionRequest request, const StageCosts& costs) {
  request.holders.clear();
  request.speeds.clear();
  for (int stage = 0; stage < costs.num_stages(); ++stage) {
    request.holders.push_back({stage, stage, 1, 0});
    request.speeds.push_back(costs.slowest_speed(stage));
  }
  const StageCosts alone(request);
  Caps caps;
  caps.rank_seconds = search_cuts(alone, caps, Criterion::RankSeconds).value;
  return search_cuts(alone, caps, Criterion::Squares).first_unit;
}

std::string stages_of(const PartitionRequest& request, int rank) {
  std::vector<std::string> stages;
  for (const Holder& holder : request.holders) {
    if (holder.rank == rank) stages.push_back(cat(holder.stage));
  }
  return cat(stages.size() == 1 ? "stage " : "stages ", joined(stages));
}

std::string units_of(const PartitionRequest& request, const std::vector<int>& first_unit, int rank) {
  std::vector<std::string> ranges;
  for (const Holder& holder : request.holders) {
    if (holder.rank != rank) continue;
    const std::string &first = request.units[first_unit[holder.stage]].name,
                      &last = request.units[first_unit[holder.stage + 1] - 1].name;
    ranges.push_back(first == last ? first : cat(first, " .. ", last));
  }
  return joined(ranges);
}

// Throws ConfigError. `tightest` is the partition whose fullest rank needs least memory, or the best known one.
[[noreturn]] void refuse(const PartitionRequest& request, const Partition& tightest) {
  const auto fullest = std::max_element(tightest.rank_bytes.begin(), tightest.rank_bytes.end());
  const int rank = static_cast<int>(fullest - tightest.rank_bytes.begin());
  const double needed = std::ceil(static_cast<double>(*fullest) / kGibi * 1e3) / 1e3;
  const double limit = std::round(static_cast<double>(request.limit_bytes) / kGibi * 1e6) / 1e6;
  throw ConfigError(
      {{"memory.limit_gb", exact(limit),
        cat("must leave room for the model: even in the cut that needs least, rank ", rank, " (",
            stages_of(request, rank), ": ", units_of(request, tightest.first_unit, rank), ") needs ",
            human_bytes(static_cast<double>(*fullest)), ", ", *fullest - request.limit_bytes, " bytes over the limit"),
        exact(needed)}});
}

void refuse_too_few_units(const PartitionRequest& request, const StageCosts& costs) {
  if (costs.num_units() >= costs.num_stages()) return;
  throw ConfigError({{"pipeline.partition", "",
                      cat("must leave every stage a part of the model: ", counted(costs.num_stages(), "stage"), ", ",
                          counted(costs.num_units(), "part")),
                      ""}});
}

// Minimizes the criteria in turn. Returns nothing if the search for one of them has too many states.
std::vector<int> best_cuts(const StageCosts& costs, Caps caps) {
  CutSearch found = search_cuts(costs, caps, Criterion::RankSeconds);
  if (found.end == End::TooManyStates) return {};
  check(found.end == End::Found, "a partition within the limit exists");
  caps.rank_seconds = found.value;
  found = search_cuts(costs, caps, Criterion::StageSeconds);
  if (found.end != End::Found) return {};
  caps.stage_seconds = found.value;
  return search_cuts(costs, caps, Criterion::Squares).first_unit;
}

}  // namespace

std::vector<Holder> holders(const Schedule& schedule) {
  std::map<std::pair<int, int>, Holder> found;  // key: stage and rank
  for (int rank = 0; rank < schedule.num_ranks(); ++rank) {
    std::map<int, int> now, done;  // microbatches by stage
    for (const Action& action : schedule.programs[rank]) {
      Holder& holder = found.try_emplace({action.stage, rank}, Holder{action.stage, rank, 0, 0}).first->second;
      if (action.op == Op::Forward) holder.in_flight = std::max(holder.in_flight, ++now[action.stage]);
      if (action.op == Op::Forward) holder.share = double(++done[action.stage]) / schedule.num_microbatches;
      if (action.op == Op::FullBackward || action.op == Op::WeightGrad) --now[action.stage];
    }
  }
  std::vector<Holder> all;
  for (const auto& [place, holder] : found) {
    if (holder.share > 0) all.push_back(holder);
  }
  return all;
}

Partition partition_units(const PartitionRequest& request) {
  const StageCosts costs(request);
  refuse_too_few_units(request, costs);
  const int64_t limit = request.limit_bytes;
  Caps caps;
  const auto start = improved_cuts(costs, balanced_stages(request, costs), limit);
  if (limit > 0) {
    caps.rank_bytes = limit;
    const CutSearch tightest = search_cuts(costs, {}, Criterion::RankBytes);
    const auto cuts = tightest.end == End::Found ? tightest.first_unit : start;
    const Partition least = costs.partition(cuts);
    if (score(least, limit).bytes_over > 0) refuse(request, least);
  }
  const Partition found = costs.partition(start);
  if (score(found, limit).bytes_over == 0) caps.rank_seconds = score(found, limit).rank_seconds * kSumTolerance;
  const auto best = best_cuts(costs, caps);
  if (!best.empty()) return costs.partition(best);
  Partition made = found;
  made.quality = Partition::Quality::Found;
  return made;
}

}  // namespace braid::plan
